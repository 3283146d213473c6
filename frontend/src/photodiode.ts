/**
 * The patch for a photodiode: a square in a corner of the screen, on the same canvas and drawn by the same frame as
 * what it tells of. White with the phase the study names, black at any other time.
 */

export type Phase = "cue" | "image";

/** As the study file has it. */
export interface Photodiode {
  corner: "top-left" | "top-right" | "bottom-left" | "bottom-right";
  /** Its side, in CSS pixels. */
  size_px: number;
  phase: Phase;
}

interface Area {
  width: number;
  height: number;
}

interface Square {
  left: number;
  top: number;
  size: number;
}

/** Whether the patch is white while a phase is shown; without one, nothing is a phase. */
export function isWhite(photodiode: Photodiode, phase?: Phase): boolean {
  return photodiode.phase === phase;
}

/**
 * Where the patch lies, all in pixels of the canvas. It never covers an image in the middle: where the corner is too
 * narrow for the size asked for, the patch is as large as fits.
 */
export function placeSquare(photodiode: Photodiode, ratio: number, canvas: Area, images: Area[]): Square {
  const room = images.map(({ width, height }) => Math.max(canvas.width - width, canvas.height - height) / 2);
  const size = Math.floor(Math.max(0, Math.min(Math.round(photodiode.size_px * ratio), ...room)));
  const [edge, side] = photodiode.corner.split("-");
  return {
    left: side === "left" ? 0 : canvas.width - size,
    top: edge === "top" ? 0 : canvas.height - size,
    size,
  };
}

/**
 * Between trials there is no canvas: an element keeps the corner black, and moves aside what else lies there (page.css).
 * Over everything but the canvas.
 */
export function createBlackCorner({ corner, size_px }: Photodiode): HTMLElement {
  const element = document.createElement("div");
  element.id = "patch";
  element.ariaHidden = "true";
  document.documentElement.style.setProperty("--patch", `${size_px}px`);
  document.body.dataset["patch"] = corner;
  return element;
}
