/** Drawing the borders between segments on the image, with mouse, pen, finger or keyboard. */

import { el, paragraphs } from "../dom.ts";
import { fitSize } from "../display.ts";
import { correctGamma } from "../canvas.ts";
import type { Context, ContoursResult, Screen } from "../screen.ts";
import { closeIfNear, type Line, packLines, type Point } from "./contour-lines.ts";
import { createStatusLine, createButton, showPanel, createDeferred } from "./panel.ts";
import { svg } from "./pictures.ts";

const ARROWS: Record<string, Point> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const MIN_HEIGHT_PX = 300;
const MAX_HEIGHT_SHARE = 0.7; // of the window's height
const LEAVE_STRIP_PX = 70; // for the leave button below
const CLOSE_DISTANCE_PX = 10; // on the screen: a line that ends this close to its start is closed

/** Resolve with the drawn lines, in pixels of the image. */
export const contoursScreen: Screen<ContoursResult> = async (container, context) => {
  const image = context.image!;
  const size = { width_px: image.naturalWidth, height_px: image.naturalHeight };
  const drawing = new Drawing(size.width_px, size.height_px, context);
  const { promise, resolve } = createDeferred<void>();
  const done = createButton(context, "contours_skip", "main", resolve);
  const undo = createButton(context, "contours_undo", "plain", () => drawing.undo());
  const clear = createButton(context, "contours_clear", "plain", () => drawing.clear());
  const count = createStatusLine("note");
  drawing.onChange = () => {
    const lines = drawing.lines.length;
    undo.disabled = clear.disabled = lines === 0;
    done.textContent = context.text(lines ? "contours_done" : "contours_skip");
    count.textContent = context.text("contours_count", { lines });
  };
  const text = [...paragraphs(context.text("contours")), ...paragraphs(context.text("contours_keyboard"))];
  const corrected = correctGamma(image, size.width_px, size.height_px, context.display.lut);
  const picture = el("div", { class: "drawing" }, corrected, drawing.surface);
  const buttons = el("div", { class: "buttons" }, done, undo, clear, count);
  const sheet = showPanel(container, context.text("contours_title"), ...text, picture, buttons);
  sheet.classList.add("on-grey", "wide");
  const aspectRatio = `${size.width_px} / ${size.height_px}`;
  Object.assign(picture.style, { width: `${computeWidth(size, sheet)}px`, aspectRatio });
  drawing.surface.focus({ preventScroll: true });
  drawing.onChange();
  await promise;
  drawing.finishLine();
  return { contours: packLines(drawing.lines), ...size };
};

/** Return the width of the image: as large as fits below the text, but large enough to draw on. */
function computeWidth(size: { width_px: number; height_px: number }, sheet: HTMLElement): number {
  const remaining = innerHeight - LEAVE_STRIP_PX - sheet.offsetHeight;
  const height = Math.max(MIN_HEIGHT_PX, Math.min(MAX_HEIGHT_SHARE * innerHeight, remaining));
  return fitSize(size, Infinity, { width: sheet.querySelector("h1")!.clientWidth, height }).width;
}

/** The drawn lines and the surface above the image that shows them. Coordinates are in pixels of the image. */
class Drawing {
  readonly surface: SVGSVGElement;
  lines: Line[] = [];
  onChange: () => void = () => {};
  private readonly width: number;
  private readonly height: number;
  private readonly cross = svg("path", { class: "cross", d: "M-9 0 H9 M0 -9 V9" });
  private readonly pen: { at: Point };
  private openLine: Line | null = null; // the line that is being drawn

  constructor(width: number, height: number, context: Context) {
    [this.width, this.height, this.pen] = [width, height, { at: [width / 2, height / 2] }];
    const accessibility = { role: "application", "aria-label": context.text("contours_keyboard"), tabindex: 0 };
    this.surface = svg("svg", { viewBox: `0 0 ${width} ${height}`, "data-testid": "drawing", ...accessibility });
    const options = { signal: context.signal };
    this.surface.addEventListener("pointerdown", (event) => this.handlePointerDown(event), options);
    this.surface.addEventListener("pointermove", (event) => this.handlePointerMove(event), options);
    for (const name of ["pointerup", "pointercancel"] as const) {
      this.surface.addEventListener(name, (event) => this.openLine && event.isPrimary && this.finishLine(), options);
    }
    this.surface.addEventListener("keydown", (event) => this.handleKey(event), options);
    this.draw();
  }

  undo(): void {
    if (this.openLine) this.openLine = null;
    this.lines.pop();
    this.draw();
  }

  clear(): void {
    this.openLine = null;
    this.lines = [];
    this.draw();
  }

  /** Finish the current line. */
  finishLine(): void {
    const line = this.openLine;
    if (!line) return;
    this.openLine = null;
    const finished = line.length > 1 ? [closeIfNear(line, CLOSE_DISTANCE_PX * this.scale)] : [];
    this.lines.splice(this.lines.indexOf(line), 1, ...finished);
    this.draw();
  }

  /** Image pixels per CSS pixel. */
  private get scale(): number {
    return this.width / (this.surface.getBoundingClientRect().width || this.width);
  }

  private startLine(at: Point): void {
    this.openLine = [at];
    this.lines.push(this.openLine);
  }

  private handlePointerDown(event: PointerEvent): void {
    if (event.button !== 0 || !event.isPrimary) return;
    event.preventDefault();
    this.finishLine();
    this.surface.classList.remove("by-keys");
    this.surface.setPointerCapture(event.pointerId);
    this.startLine(this.toImagePoint(event));
    this.draw();
  }

  private handlePointerMove(event: PointerEvent): void {
    if (!this.openLine || !this.surface.hasPointerCapture(event.pointerId)) return;
    const events = event.getCoalescedEvents?.() ?? [];
    for (const each of events.length > 0 ? events : [event]) this.openLine.push(this.toImagePoint(each));
    this.draw();
  }

  private toImagePoint(event: PointerEvent): Point {
    const box = this.surface.getBoundingClientRect();
    return this.clampToImage([(event.clientX - box.left) * this.scale, (event.clientY - box.top) * this.scale]);
  }

  private clampToImage([x, y]: Point): Point {
    return [Math.min(this.width, Math.max(0, x)), Math.min(this.height, Math.max(0, y))];
  }

  private handleKey(event: KeyboardEvent): void {
    const direction = ARROWS[event.key];
    const undo = event.key === "z" && (event.ctrlKey || event.metaKey);
    if (!direction && !undo && event.key !== " " && event.key !== "Enter") return;
    event.preventDefault();
    this.surface.classList.add("by-keys");
    if (direction) {
      const step = (event.shiftKey ? 20 : 4) * this.scale;
      this.pen.at = this.clampToImage([this.pen.at[0] + step * direction[0], this.pen.at[1] + step * direction[1]]);
    } else if (undo) this.undo();
    else if (event.key === "Enter") this.finishLine();
    else if (this.openLine) this.openLine.push(this.pen.at);
    else this.startLine(this.pen.at);
    this.draw();
  }

  private draw(): void {
    const lines = this.lines.flatMap((line) => {
      const visible = line === this.openLine && this.isUsingKeys ? [...line, this.pen.at] : line;
      const points = visible.map((at) => at.join()).join(" ");
      return [svg("polyline", { points, class: "halo" }), svg("polyline", { points, class: "line" })];
    });
    this.cross.setAttribute("transform", `translate(${this.pen.at.join()}) scale(${this.scale})`);
    this.surface.replaceChildren(...lines, this.cross);
    this.onChange();
  }

  private get isUsingKeys(): boolean {
    return this.surface.classList.contains("by-keys");
  }
}
