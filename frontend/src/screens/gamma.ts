/**
 * The screen's gamma by eye, after To et al. (2013): a plain disc is matched to a fine dither of black and white
 * pixels of the screen. What the matches mean is in gamma-estimate.ts.
 */

import { el, paragraphs } from "../dom.ts";
import type { Context, GammaFound, Screen } from "../screen.ts";
import { estimateGamma, type Match, SHARES, white } from "./gamma-estimate.ts";
import { announcer, button, panel, settled } from "./panel.ts";

const SIZE = 256; // CSS pixels, a multiple of four so that it stays whole at 125 and 150 %
const DISC = 0.28; // radius of the disc, as a share of the size

/** Several matches from random starts, and what they say together. */
export const gamma: Screen<GammaFound> = async (place, context) => {
  const canvas = el("canvas", { class: "dither", role: "img", "aria-label": context.text("gamma_title") });
  const matches: Match[] = [];
  const of = context.study.calibration.gamma_matches;
  const controls = new Controls(place, context, canvas);
  const one_to_one = await fitToScreenPixels(canvas);
  if (!one_to_one) controls.warn(context.text("gamma_zoom"));
  while (matches.length < of) {
    const share = SHARES[matches.length % SHARES.length]!;
    const start = Math.round(40 + 175 * Math.random());
    const level = await controls.match(share, start, context.text("gamma_progress", { done: matches.length + 1, of }));
    matches.push({ share, level, start });
  }
  return { ...estimateGamma(matches), device_pixel_ratio: devicePixelRatio, one_to_one };
};

/** The slider, its two buttons, the arrow keys, and the picture they change. */
class Controls {
  private readonly canvas: HTMLCanvasElement;
  private readonly slider = el("input", { type: "range", min: 0, max: 255, step: 1, "data-testid": "gamma_level" });
  private readonly progress = announcer("note");
  private readonly warning = announcer("problem");
  private share: number = SHARES[0];
  private matched: () => void = () => {};

  constructor(place: HTMLElement, context: Context, canvas: HTMLCanvasElement) {
    this.canvas = canvas;
    this.slider.setAttribute("aria-label", `${context.text("gamma_darker")} – ${context.text("gamma_lighter")}`);
    this.slider.addEventListener("input", () => this.draw());
    const row = el(
      "div",
      { class: "slider" },
      button(context, "gamma_darker", "plain", () => this.step(-2)),
      this.slider,
      button(context, "gamma_lighter", "plain", () => this.step(2)),
    );
    const done = button(context, "gamma_match", "main", () => this.matched());
    const end = el("div", { class: "buttons" }, done, this.progress);
    const text = paragraphs(context.text("gamma"));
    const sheet = panel(place, context.text("gamma_title"), ...text, this.warning, canvas, row, end);
    sheet.classList.add("on-grey");
    sheet.addEventListener("keydown", (event) => this.pressed(event), { signal: context.signal });
    this.slider.focus({ preventScroll: true });
  }

  /** The level at which the person says that disc and dither look alike. */
  async match(share: number, start: number, progress: string): Promise<number> {
    const { promise, resolve } = settled<void>();
    this.matched = resolve;
    this.share = share;
    this.slider.value = String(start);
    this.progress.textContent = progress;
    this.draw();
    await promise;
    return Number(this.slider.value);
  }

  warn(text: string): void {
    this.warning.textContent = text;
  }

  private pressed(event: KeyboardEvent): void {
    const steps: Record<string, number> = { ArrowUp: 1, ArrowRight: 1, ArrowDown: -1, ArrowLeft: -1 };
    const step = steps[event.key];
    if (step) {
      event.preventDefault();
      this.step(event.shiftKey || event.repeat ? 3 * step : step);
    } else if (event.key === "Enter" && event.target === this.slider && !event.repeat) this.matched();
  }

  private step(by: number): void {
    this.slider.value = String(Number(this.slider.value) + by);
    this.draw();
  }

  private draw(): void {
    const { width, height } = this.canvas;
    const [middle, radius] = [width / 2, (width * DISC) ** 2];
    const level = Number(this.slider.value);
    const picture = new ImageData(width, height);
    const pixels = new Uint32Array(picture.data.buffer);
    for (let y = 0; y < height; y++) {
      for (let x = 0; x < width; x++) {
        const inside = (x + 0.5 - middle) ** 2 + (y + 0.5 - middle) ** 2 < radius;
        const grey = inside ? level : white(x, y, this.share) ? 255 : 0;
        pixels[y * width + x] = 0xff000000 | (grey * 0x010101);
      }
    }
    this.canvas.getContext("2d")!.putImageData(picture, 0, 0);
  }
}

/**
 * Gives the canvas one pixel for each pixel of the screen; whether that worked. Where the browser cannot confirm it,
 * a whole ratio is believed.
 */
async function fitToScreenPixels(canvas: HTMLCanvasElement): Promise<boolean> {
  const pixels = Math.round(SIZE * devicePixelRatio);
  canvas.width = canvas.height = pixels;
  canvas.style.width = canvas.style.height = `${pixels / devicePixelRatio}px`;
  if (Math.abs((visualViewport?.scale ?? 1) - 1) > 0.01) return false;
  const seen = await new Promise<number | undefined>((resolve) => {
    const observer = new ResizeObserver(([entry]) => {
      observer.disconnect();
      resolve(entry?.devicePixelContentBoxSize?.[0]?.inlineSize);
    });
    observer.observe(canvas);
  });
  return seen === undefined ? devicePixelRatio % 1 === 0 : seen === pixels;
}
