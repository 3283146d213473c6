/** Sizes on this screen, and the table that maps grey values of an image to grey values of the screen. */

import type { DistanceResult, GammaResult } from "./screen.ts";
import type { StudyInfo } from "./wire.ts";

export interface Display {
  /** Width of the image, and diameter of a dot, in CSS pixels. */
  width_px: number;
  dot_px: number;
  /** CSS pixels per degree at the centre of the screen; null if the viewing distance is unknown. */
  px_per_deg: number | null;
  /** Convert a width in CSS pixels, centred on the screen, to degrees; null if the viewing distance is unknown. */
  degrees: (width_px: number) => number | null;
  /** The screen's gamma from the participant's matches; null if it was not measured. */
  gamma: number | null;
  /** Maps a grey value of the image to a grey value of this screen. */
  lut: Uint8ClampedArray;
  /** The grey of the background, mapped through `lut`. */
  background: number;
}

/** Return the display of a study from the calibration results; sizes not calibrated are the study's own pixels. */
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

/**
 * Return the table v' = v^(image gamma / screen gamma). Luminance then follows the image's values to the power `image`.
 */
export function inverseGammaTable(image: number, screen: number | null): Uint8ClampedArray {
  const power = screen === null ? 1 : image / screen;
  return Uint8ClampedArray.from({ length: 256 }, (_, value) => 255 * (value / 255) ** power);
}

/** Return the size at which an image is shown: `width` wide, or smaller if that does not fit into `available`. */
export function fitSize(
  image: { width_px: number; height_px: number },
  width: number,
  available: { width: number; height: number },
): { width: number; height: number } {
  const ratio = image.height_px / image.width_px;
  const fittedWidth = Math.min(width, available.width, available.height / ratio);
  return { width: fittedWidth, height: fittedWidth * ratio };
}
