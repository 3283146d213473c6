/** Calculate the viewing distance from the position at which a dot disappears in the blind spot. */

import { standardDeviation, mean } from "./numbers.ts";

const BLIND_SPOT_DEG = 13.5; // as in the virtual chinrest, after Li et al. (2020)
const SPEED_PX_PER_S = 120;
const POSSIBLE_MM = { nearest: 300, farthest: 1500 };
const MAX_RELATIVE_SPREAD = 0.2; // of the mean

/** Return the viewing distance at which a dot this far from fixation falls on the blind spot. */
export function distanceFromOffset(offset_px: number, px_per_mm: number): number {
  return offset_px / px_per_mm / Math.tan((BLIND_SPOT_DEG * Math.PI) / 180);
}

/** Return whether this is a plausible viewing distance. */
export function isPossible(distance_mm: number): boolean {
  return distance_mm >= POSSIBLE_MM.nearest && distance_mm <= POSSIBLE_MM.farthest;
}

/** Return whether the measurements differ too much for their mean to be reliable. */
export function isScattered(measured_mm: readonly number[]): boolean {
  return (standardDeviation(measured_mm) ?? 0) > MAX_RELATIVE_SPREAD * mean(measured_mm);
}

/** Return the position of the dot: it moves left from its rest position and starts again at the edge. */
export function dotPosition(rest_px: number, elapsed_ms: number): number {
  return rest_px - (((SPEED_PX_PER_S * elapsed_ms) / 1000) % Math.max(rest_px, 1));
}
