/**
 * Measure the screen's gamma by eye, after To et al. (2013): participants match a uniform disc to a fine dither of
 * black and white pixels. The estimate is in gamma-estimate.ts.
 */

import { el, paragraphs } from "../dom.ts";
import type { Context, GammaResult, Screen } from "../screen.ts";
import { estimateGamma, type Match, findObjection, SHARES, chooseStart, isWhitePixel } from "./gamma-estimate.ts";
import { createStatusLine, createButton, showPanel, createDeferred } from "./panel.ts";

const SIZE = 256; // CSS pixels, a multiple of four so that it is whole at a zoom of 125 and 150 %
const MAX_ROUNDS = 2;
const DISC_RADIUS = 0.28; // as a share of the size

/** Resolve with the estimate from several matches; add a second round if they disagree. */
export const gammaScreen: Screen<GammaResult> = async (container, context) => {
  const canvas = el("canvas", { class: "dither", role: "img", "aria-label": context.text("gamma_title") });
  const matchesPerRound = context.study.calibration.gamma_matches;
  const controls = new Controls(container, context, canvas);
  const one_to_one = await fitToScreenPixels(canvas);
  const rounds: Match[][] = [];
  do {
    if (rounds.length > 0) controls.showAdvice(context.text("gamma_more"));
    const before = rounds.length * matchesPerRound;
    const matches: Match[] = [];
    while (matches.length < matchesPerRound) {
      const values = { done: before + matches.length + 1, of: before + matchesPerRound };
      const share = SHARES[matches.length % SHARES.length]!;
      matches.push(await controls.match(share, context.text("gamma_progress", values)));
    }
    rounds.push(matches);
  } while (rounds.length < MAX_ROUNDS && !estimateGamma(rounds).reliable);
  return { ...estimateGamma(rounds), device_pixel_ratio: devicePixelRatio, one_to_one };
};

/** The slider, its buttons, the arrow keys, and the image that they change. */
class Controls {
  private readonly canvas: HTMLCanvasElement;
  private readonly slider = el("input", { type: "range", min: 0, max: 255, step: 1, "data-testid": "gamma_level" });
  private readonly progress = createStatusLine("note");
  private readonly advice = createStatusLine("advice");
  private readonly text: Context["text"];
  private moved = false;
  private share: number = SHARES[0];
  private onMatch: () => void = () => {};

  constructor(container: HTMLElement, context: Context, canvas: HTMLCanvasElement) {
    this.canvas = canvas;
    this.text = context.text;
    this.slider.setAttribute("aria-label", `${context.text("gamma_darker")} – ${context.text("gamma_lighter")}`);
    this.slider.addEventListener("input", () => this.change());
    const row = el(
      "div",
      { class: "slider" },
      createButton(context, "gamma_darker", "plain", () => this.step(-2)),
      this.slider,
      createButton(context, "gamma_lighter", "plain", () => this.step(2)),
    );
    const done = createButton(context, "gamma_match", "main", () => this.onMatch());
    const end = el("div", { class: "buttons" }, done, this.progress);
    const text = paragraphs(context.text("gamma"));
    const sheet = showPanel(container, context.text("gamma_title"), ...text, canvas, row, end, this.advice);
    sheet.classList.add("on-grey");
    sheet.addEventListener("keydown", (event) => this.handleKey(event), { signal: context.signal });
    this.slider.focus({ preventScroll: true });
  }

  /** Resolve with the level at which the participant says that disc and dither look alike. */
  async match(share: number, progress: string): Promise<Match> {
    const start = chooseStart(share, Math.random);
    this.share = share;
    this.moved = false;
    this.slider.value = String(start);
    this.progress.textContent = progress;
    this.draw();
    for (let warned = false; ; ) {
      const { promise, resolve } = createDeferred<void>();
      this.onMatch = resolve;
      await promise;
      const match = { share, level: Number(this.slider.value), start };
      const problem = findObjection(match, this.moved, warned);
      this.showAdvice(problem ? this.text(problem) : "");
      if (!problem) return match;
      warned ||= problem === "gamma_unlikely";
    }
  }

  showAdvice(text: string): void {
    this.advice.textContent = text;
    if (text) this.advice.scrollIntoView({ block: "nearest" }); // in a low window it is below the edge
  }

  private handleKey(event: KeyboardEvent): void {
    const steps: Record<string, number> = { ArrowUp: 1, ArrowRight: 1, ArrowDown: -1, ArrowLeft: -1 };
    const step = steps[event.key];
    if (step) {
      event.preventDefault();
      this.step(event.shiftKey || event.repeat ? 3 * step : step);
    } else if (event.key === "Enter" && event.target === this.slider) {
      event.preventDefault(); // otherwise the same key press activates the next screen's button
      if (!event.repeat) this.onMatch();
    }
  }

  private step(by: number): void {
    this.slider.value = String(Number(this.slider.value) + by);
    this.change();
  }

  private change(): void {
    this.moved = true;
    this.draw();
  }

  private draw(): void {
    const { width, height } = this.canvas;
    const [centre, radiusSquared] = [width / 2, (width * DISC_RADIUS) ** 2];
    const level = Number(this.slider.value);
    const picture = new ImageData(width, height);
    const pixels = new Uint32Array(picture.data.buffer);
    for (let y = 0; y < height; y++) {
      for (let x = 0; x < width; x++) {
        const inside = (x + 0.5 - centre) ** 2 + (y + 0.5 - centre) ** 2 < radiusSquared;
        const grey = inside ? level : isWhitePixel(x, y, this.share) ? 255 : 0;
        pixels[y * width + x] = 0xff000000 | (grey * 0x010101);
      }
    }
    this.canvas.getContext("2d")!.putImageData(picture, 0, 0);
  }
}

/**
 * Give the canvas one pixel per pixel of the screen and return whether that worked. If the browser cannot confirm it, a
 * whole pixel ratio counts as success.
 */
async function fitToScreenPixels(canvas: HTMLCanvasElement): Promise<boolean> {
  const pixels = Math.round(SIZE * devicePixelRatio);
  canvas.width = canvas.height = pixels;
  canvas.style.width = canvas.style.height = `${pixels / devicePixelRatio}px`;
  if (Math.abs((visualViewport?.scale ?? 1) - 1) > 0.01) return false;
  const actual = await new Promise<number | undefined>((resolve) => {
    const observer = new ResizeObserver(([entry]) => {
      observer.disconnect();
      resolve(entry?.devicePixelContentBoxSize?.[0]?.inlineSize);
    });
    observer.observe(canvas);
  });
  return actual === undefined ? devicePixelRatio % 1 === 0 : actual === pixels;
}
