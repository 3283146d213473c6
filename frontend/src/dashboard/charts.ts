/** Charts drawn by uPlot from the JSON in data-chart. */

import uPlot from "uplot";

import { type ChartData, formatTime, WHOLE_STEPS, xRange, yRange } from "./scales.ts";

const HEIGHT_PX = 190;
const FONT = "12px system-ui, sans-serif";
const COLOURS = {
  light: { mark: "#0b7285", fill: "#0b728526", dot: "#0b7285aa", text: "#5b6369", grid: "#e7e9e7" },
  dark: { mark: "#7cc6dc", fill: "#7cc6dc33", dot: "#7cc6dcaa", text: "#a3abb1", grid: "#33373b" },
};

const plots = new Map<Element, { json: string; plot: uPlot }>();
const sizes = new ResizeObserver((entries) => {
  for (const { target, contentRect } of entries) {
    plots.get(target)?.plot.setSize({ width: Math.floor(contentRect.width), height: HEIGHT_PX });
  }
});

/** Draw all new or changed charts of the page, and remove those whose elements are gone. */
export function drawAll(): void {
  for (const container of [...plots.keys()]) if (!container.isConnected) removeChart(container);
  for (const container of document.querySelectorAll<HTMLElement>("[data-chart]")) {
    const json = container.dataset["chart"]!;
    const existing = plots.get(container);
    if (existing?.json === json) continue;
    const chart = JSON.parse(json) as ChartData;
    removeChart(container);
    const plot = new uPlot(options(chart, container.clientWidth), [chart.x, chart.y], container);
    plots.set(container, { json, plot });
    sizes.observe(container);
  }
}

/** Redraw all charts in the current colour scheme. */
export function redrawAll(): void {
  for (const container of [...plots.keys()]) removeChart(container);
  drawAll();
}

function removeChart(container: Element): void {
  plots.get(container)?.plot.destroy();
  plots.delete(container);
  sizes.unobserve(container);
}

function options(chart: ChartData, width: number): uPlot.Options {
  const colours = COLOURS[matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"];
  const axis: uPlot.Axis = {
    stroke: colours.text, font: FONT, labelFont: FONT, labelGap: 2, labelSize: 20,
    ticks: { show: false }, grid: { stroke: colours.grid, width: 1 },
  };
  const times = chart.isTime ? { space: 60, values: (_: uPlot, marks: number[]) => marks.map(formatTime) } : {};
  const bars = chart.kind === "bars";
  const series: uPlot.Series = bars
    ? {
        paths: uPlot.paths.bars!({ size: [0.9, Infinity] }),
        fill: colours.fill,
        stroke: colours.mark,
        width: 1,
        points: { show: false },
      }
    : { paths: () => null, points: { show: true, size: 4, fill: colours.dot, stroke: colours.dot, width: 0 } };
  return {
    width: Math.max(width, 50),
    height: HEIGHT_PX,
    padding: [8, 20, 0, 0],
    cursor: { show: false },
    legend: { show: false },
    tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "UTC"),
    scales: { x: { time: chart.isTime, range: () => xRange(chart) }, y: { range: () => yRange(chart.y) } },
    series: [{}, series],
    axes: [
      { ...axis, ...times, label: chart.xLabel, grid: { show: false }, size: 30 },
      { ...axis, label: chart.yLabel, size: 46, space: 28, incrs: WHOLE_STEPS },
    ],
  };
}
