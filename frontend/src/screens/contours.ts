/** Drawing the borders between segments on the picture: with mouse, pen, finger, or the keyboard alone. */

import { el, paragraphs } from "../dom.ts";
import { fitSize } from "../display.ts";
import { correctGamma } from "../canvas.ts";
import type { Context, ContoursFound, Screen } from "../screen.ts";
import { closedIfNear, type Line, packed, type Point } from "./contour-lines.ts";
import { announcer, button, panel, settled } from "./panel.ts";
import { svg } from "./pictures.ts";

const ARROWS: Record<string, Point> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const SMALLEST_PX = 300;
const LARGEST_SHARE = 0.7; // of the window's height
const STRIP_PX = 70; // for the way out, below
const CLOSES_PX = 10; // of the screen: a line that ends so near its start is meant to be closed

/** The lines drawn, in pixels of the image. */
export const contours: Screen<ContoursFound> = async (place, context) => {
  const image = context.image!;
  const size = { width_px: image.naturalWidth, height_px: image.naturalHeight };
  const drawing = new Drawing(size.width_px, size.height_px, context);
  const { promise, resolve } = settled<void>();
  const done = button(context, "contours_skip", "main", resolve);
  const undo = button(context, "contours_undo", "plain", () => drawing.undo());
  const clear = button(context, "contours_clear", "plain", () => drawing.clear());
  const count = announcer("note");
  drawing.changed = () => {
    const lines = drawing.lines.length;
    undo.disabled = clear.disabled = lines === 0;
    done.textContent = context.text(lines ? "contours_done" : "contours_skip");
    count.textContent = context.text("contours_count", { lines });
  };
  const words = [...paragraphs(context.text("contours")), ...paragraphs(context.text("contours_keyboard"))];
  const shown = correctGamma(image, size.width_px, size.height_px, context.display.lut);
  const picture = el("div", { class: "drawing" }, shown, drawing.surface);
  const buttons = el("div", { class: "buttons" }, done, undo, clear, count);
  const sheet = panel(place, context.text("contours_title"), ...words, picture, buttons);
  sheet.classList.add("on-grey", "wide");
  Object.assign(picture.style, { width: `${widest(size, sheet)}px`, aspectRatio: `${size.width_px} / ${size.height_px}` });
  drawing.surface.focus({ preventScroll: true });
  drawing.changed();
  await promise;
  drawing.end();
  return { contours: packed(drawing.lines), ...size };
};

/** As wide as the window leaves room for beside the words, and at least so that one can draw. */
function widest(size: { width_px: number; height_px: number }, sheet: HTMLElement): number {
  const left = innerHeight - STRIP_PX - sheet.offsetHeight;
  const height = Math.max(SMALLEST_PX, Math.min(LARGEST_SHARE * innerHeight, left));
  return fitSize(size, Infinity, { width: sheet.querySelector("h1")!.clientWidth, height }).width;
}

/** The lines, and the surface over the picture on which they appear. Coordinates are pixels of the image. */
class Drawing {
  readonly surface: SVGSVGElement;
  lines: Line[] = [];
  changed: () => void = () => {};
  private readonly width: number;
  private readonly height: number;
  private readonly cross = svg("path", { class: "cross", d: "M-9 0 H9 M0 -9 V9" });
  private readonly pen: { at: Point };
  private open: Line | null = null; // the line that is being drawn

  constructor(width: number, height: number, context: Context) {
    [this.width, this.height, this.pen] = [width, height, { at: [width / 2, height / 2] }];
    const named = { role: "application", "aria-label": context.text("contours_keyboard"), tabindex: 0 };
    this.surface = svg("svg", { viewBox: `0 0 ${width} ${height}`, "data-testid": "drawing", ...named });
    const listen = { signal: context.signal };
    this.surface.addEventListener("pointerdown", (event) => this.down(event), listen);
    this.surface.addEventListener("pointermove", (event) => this.move(event), listen);
    for (const name of ["pointerup", "pointercancel"] as const) {
      this.surface.addEventListener(name, (event) => this.open && event.isPrimary && this.end(), listen);
    }
    this.surface.addEventListener("keydown", (event) => this.key(event), listen);
    this.draw();
  }

  undo(): void {
    if (this.open) this.open = null;
    this.lines.pop();
    this.draw();
  }

  clear(): void {
    this.open = null;
    this.lines = [];
    this.draw();
  }

  /** Lift the pen. */
  end(): void {
    const line = this.open;
    if (!line) return;
    this.open = null;
    const drawn = line.length > 1 ? [closedIfNear(line, CLOSES_PX * this.scale)] : [];
    this.lines.splice(this.lines.indexOf(line), 1, ...drawn);
    this.draw();
  }

  /** Image pixels in a pixel of the page. */
  private get scale(): number {
    return this.width / (this.surface.getBoundingClientRect().width || this.width);
  }

  private begin(at: Point): void {
    this.open = [at];
    this.lines.push(this.open);
  }

  private down(event: PointerEvent): void {
    if (event.button !== 0 || !event.isPrimary) return;
    event.preventDefault();
    this.end();
    this.surface.classList.remove("by-keys");
    this.surface.setPointerCapture(event.pointerId);
    this.begin(this.placeOf(event));
    this.draw();
  }

  private move(event: PointerEvent): void {
    if (!this.open || !this.surface.hasPointerCapture(event.pointerId)) return;
    const passed = event.getCoalescedEvents?.() ?? [];
    for (const each of passed.length > 0 ? passed : [event]) this.open.push(this.placeOf(each));
    this.draw();
  }

  private placeOf(event: PointerEvent): Point {
    const box = this.surface.getBoundingClientRect();
    return this.inside([(event.clientX - box.left) * this.scale, (event.clientY - box.top) * this.scale]);
  }

  private inside([x, y]: Point): Point {
    return [Math.min(this.width, Math.max(0, x)), Math.min(this.height, Math.max(0, y))];
  }

  private key(event: KeyboardEvent): void {
    const direction = ARROWS[event.key];
    const undo = event.key === "z" && (event.ctrlKey || event.metaKey);
    if (!direction && !undo && event.key !== " " && event.key !== "Enter") return;
    event.preventDefault();
    this.surface.classList.add("by-keys");
    if (direction) {
      const step = (event.shiftKey ? 20 : 4) * this.scale;
      this.pen.at = this.inside([this.pen.at[0] + step * direction[0], this.pen.at[1] + step * direction[1]]);
    } else if (undo) this.undo();
    else if (event.key === "Enter") this.end();
    else if (this.open) this.open.push(this.pen.at);
    else this.begin(this.pen.at);
    this.draw();
  }

  private draw(): void {
    const lines = this.lines.flatMap((line) => {
      const seen = line === this.open && this.byKeys ? [...line, this.pen.at] : line;
      const points = seen.map((at) => at.join()).join(" ");
      return [svg("polyline", { points, class: "halo" }), svg("polyline", { points, class: "line" })];
    });
    this.cross.setAttribute("transform", `translate(${this.pen.at.join()}) scale(${this.scale})`);
    this.surface.replaceChildren(...lines, this.cross);
    this.changed();
  }

  private get byKeys(): boolean {
    return this.surface.classList.contains("by-keys");
  }
}
