/**
 * The screen's gamma by eye, after To et al. (2013): a plain disc is matched to a fine dither of black and white
 * pixels of the screen. What the matches mean is in gamma-estimate.ts.
 */

import { el, paragraphs } from "../dom.ts";
import type { Context, GammaFound, Screen } from "../screen.ts";
import { estimateGamma, type Match, objection, SHARES, startOf, white } from "./gamma-estimate.ts";
import { announcer, button, panel, settled } from "./panel.ts";

const SIZE = 256; // CSS pixels, a multiple of four so that it stays whole at 125 and 150 %
const MOST_ROUNDS = 2;
const DISC = 0.28; // radius of the disc, as a share of the size

/** Several matches from random starts, and what they say together; as many again if they do not agree. */
export const gamma: Screen<GammaFound> = async (place, context) => {
  const canvas = el("canvas", { class: "dither", role: "img", "aria-label": context.text("gamma_title") });
  const each = context.study.calibration.gamma_matches;
  const controls = new Controls(place, context, canvas);
  const one_to_one = await fitToScreenPixels(canvas);
  const rounds: Match[][] = [];
  do {
    if (rounds.length > 0) controls.say(context.text("gamma_more"));
    const before = rounds.length * each;
    const made: Match[] = [];
    while (made.length < each) {
      const values = { done: before + made.length + 1, of: before + each };
      const share = SHARES[made.length % SHARES.length]!;
      made.push(await controls.match(share, context.text("gamma_progress", values)));
    }
    rounds.push(made);
  } while (rounds.length < MOST_ROUNDS && !estimateGamma(rounds).reliable);
  return { ...estimateGamma(rounds), device_pixel_ratio: devicePixelRatio, one_to_one };
};

/** The slider, its two buttons, the arrow keys, and the picture they change. */
class Controls {
  private readonly canvas: HTMLCanvasElement;
  private readonly slider = el("input", { type: "range", min: 0, max: 255, step: 1, "data-testid": "gamma_level" });
  private readonly progress = announcer("note");
  private readonly advice = announcer("advice");
  private readonly text: Context["text"];
  private moved = false;
  private share: number = SHARES[0];
  private matched: () => void = () => {};

  constructor(place: HTMLElement, context: Context, canvas: HTMLCanvasElement) {
    this.canvas = canvas;
    this.text = context.text;
    this.slider.setAttribute("aria-label", `${context.text("gamma_darker")} – ${context.text("gamma_lighter")}`);
    this.slider.addEventListener("input", () => this.change());
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
    const sheet = panel(place, context.text("gamma_title"), ...text, canvas, row, end, this.advice);
    sheet.classList.add("on-grey");
    sheet.addEventListener("keydown", (event) => this.pressed(event), { signal: context.signal });
    this.slider.focus({ preventScroll: true });
  }

  /** The level at which the person says that disc and dither look alike. */
  async match(share: number, progress: string): Promise<Match> {
    const start = startOf(share, Math.random);
    this.share = share;
    this.moved = false;
    this.slider.value = String(start);
    this.progress.textContent = progress;
    this.draw();
    for (let asked = false; ; ) {
      const { promise, resolve } = settled<void>();
      this.matched = resolve;
      await promise;
      const match = { share, level: Number(this.slider.value), start };
      const why = objection(match, this.moved, asked);
      this.say(why ? this.text(why) : "");
      if (!why) return match;
      asked ||= why === "gamma_unlikely";
    }
  }

  say(text: string): void {
    this.advice.textContent = text;
    if (text) this.advice.scrollIntoView({ block: "nearest" }); // in a low window it is below the edge
  }

  private pressed(event: KeyboardEvent): void {
    const steps: Record<string, number> = { ArrowUp: 1, ArrowRight: 1, ArrowDown: -1, ArrowLeft: -1 };
    const step = steps[event.key];
    if (step) {
      event.preventDefault();
      this.step(event.shiftKey || event.repeat ? 3 * step : step);
    } else if (event.key === "Enter" && event.target === this.slider) {
      event.preventDefault(); // or the same press would go on to press the next screen's button
      if (!event.repeat) this.matched();
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
