/** Charts, drawn by uPlot from what the server wrote into data-chart. */

import uPlot from "uplot";

import { type Drawn, timeMark, WHOLE_STEPS, xRange, yRange } from "./scales.ts";

const HEIGHT_PX = 190;
const FONT = "12px system-ui, sans-serif";
const INKS = {
  light: { mark: "#0b7285", fill: "#0b728526", dot: "#0b7285aa", text: "#5b6369", grid: "#e7e9e7" },
  dark: { mark: "#7cc6dc", fill: "#7cc6dc33", dot: "#7cc6dcaa", text: "#a3abb1", grid: "#33373b" },
};

const plots = new Map<Element, { json: string; plot: uPlot }>();
const sizes = new ResizeObserver((entries) => {
  for (const { target, contentRect } of entries) {
    plots.get(target)?.plot.setSize({ width: Math.floor(contentRect.width), height: HEIGHT_PX });
  }
});

/** Draw every chart of the page that is new or has changed, and forget those that are gone. */
export function drawAll(): void {
  for (const place of [...plots.keys()]) if (!place.isConnected) forget(place);
  for (const place of document.querySelectorAll<HTMLElement>("[data-chart]")) {
    const json = place.dataset["chart"]!;
    const there = plots.get(place);
    if (there?.json === json) continue;
    const drawn = JSON.parse(json) as Drawn;
    forget(place);
    plots.set(place, { json, plot: new uPlot(options(drawn, place.clientWidth), [drawn.x, drawn.y], place) });
    sizes.observe(place);
  }
}

/** Draw them all again, in the colours of now. */
export function redrawAll(): void {
  for (const place of [...plots.keys()]) forget(place);
  drawAll();
}

function forget(place: Element): void {
  plots.get(place)?.plot.destroy();
  plots.delete(place);
  sizes.unobserve(place);
}

function options(drawn: Drawn, width: number): uPlot.Options {
  const ink = INKS[matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"];
  const axis: uPlot.Axis = {
    stroke: ink.text, font: FONT, labelFont: FONT, labelGap: 2, labelSize: 20,
    ticks: { show: false }, grid: { stroke: ink.grid, width: 1 },
  };
  const times = drawn.isTime ? { space: 60, values: (_: uPlot, marks: number[]) => marks.map(timeMark) } : {};
  const bars = drawn.kind === "bars";
  const series: uPlot.Series = bars
    ? { paths: uPlot.paths.bars!({ size: [0.9, Infinity] }), fill: ink.fill, stroke: ink.mark, width: 1, points: { show: false } }
    : { paths: () => null, points: { show: true, size: 4, fill: ink.dot, stroke: ink.dot, width: 0 } };
  return {
    width: Math.max(width, 50),
    height: HEIGHT_PX,
    padding: [8, 20, 0, 0],
    cursor: { show: false },
    legend: { show: false },
    tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "UTC"),
    scales: { x: { time: drawn.isTime, range: () => xRange(drawn) }, y: { range: () => yRange(drawn.y) } },
    series: [{}, series],
    axes: [
      { ...axis, ...times, label: drawn.xLabel, grid: { show: false }, size: 30 },
      { ...axis, label: drawn.yLabel, size: 46, space: 28, incrs: WHOLE_STEPS },
    ],
  };
}
