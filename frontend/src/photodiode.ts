/**
 * The patch for a photodiode: a square in a corner of the canvas, drawn in the same frame as the stimulus. It is white
 * during the phase that the study names and black otherwise.
 */

export type Phase = "cue" | "image";

/** The photodiode settings of the study file. */
export interface Photodiode {
  corner: "top-left" | "top-right" | "bottom-left" | "bottom-right";
  /** Side of the patch, in CSS pixels. */
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

/** Return whether the patch is white during this phase; it is black outside the phases. */
export function isWhite(photodiode: Photodiode, phase?: Phase): boolean {
  return photodiode.phase === phase;
}

/**
 * Return the position and size of the patch in pixels of the canvas. It never covers an image: if the corner is too
 * narrow for the requested size, the patch is smaller.
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
 * Create the element that keeps the corner black between trials, when the canvas is hidden. It lies above everything
 * but the canvas, and page.css keeps other elements out of the corner.
 */
export function createBlackCorner({ corner, size_px }: Photodiode): HTMLElement {
  const element = document.createElement("div");
  element.id = "patch";
  element.ariaHidden = "true";
  document.documentElement.style.setProperty("--patch", `${size_px}px`);
  document.body.dataset["patch"] = corner;
  return element;
}
