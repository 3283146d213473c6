/** How large things are on this screen, and through which table grey values reach it. */

import type { DistanceResult, GammaResult } from "./screen.ts";
import type { StudyInfo } from "./wire.ts";

export interface Display {
  /** Width of the image, and of a circle, in CSS pixels. */
  width_px: number;
  dot_px: number;
  /** CSS pixels per degree in the middle of the screen; null where the distance is not known. */
  px_per_deg: number | null;
  /** How wide so many CSS pixels are in degrees, seen from the middle; null where the distance is not known. */
  degrees: (width_px: number) => number | null;
  /** What the participant's matches said; null without them. */
  gamma: number | null;
  /** What a grey value of the image becomes on this screen. */
  lut: Uint8ClampedArray;
  /** The grey behind everything, through that table. */
  background: number;
}

/** The display of a study, from what the calibration found; without it, the study's own pixels. */
export function computeDisplay(study: StudyInfo, distance?: DistanceResult | null, gamma?: GammaResult | null): Display {
  const { width_deg, width_px, dot_deg, dot_px, background } = study.display;
  const viewing = distance?.distance_mm ? { per_mm: distance.px_per_mm, from_mm: distance.distance_mm } : null;
  const size = (degrees: number, pixels: number) =>
    viewing ? 2 * viewing.from_mm * Math.tan((degrees * Math.PI) / 360) * viewing.per_mm : pixels;
  const lut = inverseGammaTable(study.calibration.image_gamma, gamma?.gamma ?? null);
  return {
    width_px: size(width_deg, width_px),
    dot_px: size(dot_deg, dot_px),
    px_per_deg: viewing && size(1, 0),
    degrees: (width) => viewing && (360 / Math.PI) * Math.atan(width / (2 * viewing.per_mm * viewing.from_mm)),
    gamma: gamma?.gamma ?? null,
    lut,
    background: lut[background] ?? background,
  };
}

/** v' = v^(image gamma / screen gamma): luminance then follows the image's values to the power `image`. */
export function inverseGammaTable(image: number, screen: number | null): Uint8ClampedArray {
  const power = screen === null ? 1 : image / screen;
  return Uint8ClampedArray.from({ length: 256 }, (_, value) => 255 * (value / 255) ** power);
}

/** The size an image of that shape is shown at: the display's width, or what fits into the window. */
export function fitSize(
  image: { width_px: number; height_px: number },
  width: number,
  available: { width: number; height: number },
): { width: number; height: number } {
  const ratio = image.height_px / image.width_px;
  const fittedWidth = Math.min(width, available.width, available.height / ratio);
  return { width: fittedWidth, height: fittedWidth * ratio };
}
