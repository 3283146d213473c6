/** The arithmetic of the blind spot: how far away someone sits for whom a dot vanishes there. */

import { standardDeviation, mean } from "./numbers.ts";

const BLIND_SPOT_DEG = 13.5; // as in the virtual chinrest, after Li et al. (2020)
const SPEED_PX_PER_S = 120;
const POSSIBLE_MM = { nearest: 300, farthest: 1500 };
const MAX_RELATIVE_SPREAD = 0.2; // of the mean

/** The distance at which a dot that far from the fixation falls on the blind spot. */
export function distanceFromOffset(offset_px: number, px_per_mm: number): number {
  return offset_px / px_per_mm / Math.tan((BLIND_SPOT_DEG * Math.PI) / 180);
}

/** Whether someone could sit there and see the whole screen. */
export function isPossible(distance_mm: number): boolean {
  return distance_mm >= POSSIBLE_MM.nearest && distance_mm <= POSSIBLE_MM.farthest;
}

/** Whether single measurements differ so much that their mean says little. */
export function isScattered(measured_mm: readonly number[]): boolean {
  return (standardDeviation(measured_mm) ?? 0) > MAX_RELATIVE_SPREAD * mean(measured_mm);
}

/** Where the dot is after so long: it runs left from where it rested, and begins anew at the edge. */
export function dotPosition(rest_px: number, elapsed_ms: number): number {
  return rest_px - (((SPEED_PX_PER_S * elapsed_ms) / 1000) % Math.max(rest_px, 1));
}
