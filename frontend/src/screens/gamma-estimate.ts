/**
 * Estimate the screen's gamma from matches of a uniform disc to a fine dither, after To et al. (2013).
 *
 * A dither with a share s of white pixels has the luminance s, whatever the gamma. A uniform disc of level v that looks
 * the same has the luminance (v/255)^gamma, so gamma = ln s / ln(v/255).
 */

import { standardDeviation, median } from "./numbers.ts";

export interface Match {
  share: number;
  level: number;
  start: number;
}

/** A match with its estimate of gamma and its round. */
export type JudgedMatch = Match & { gamma: number | null; round: number };

export interface Estimate {
  /** Median of the plausible matches of the last round; null if they are not reliable. */
  gamma: number | null;
  /** Their standard deviation; null with fewer than two. */
  spread: number | null;
  /** Whether enough matches of the last round are plausible, and they agree. */
  reliable: boolean;
  /** All matches, also the implausible ones. */
  matches: JudgedMatch[];
}

/** Shares of white pixels, used in turn. */
export const SHARES = [1 / 2, 1 / 4, 3 / 4] as const;

/** Plausible gammas; a match outside this range was not made by eye. */
const POSSIBLE = { lowest: 0.5, highest: 5 };
/** Gammas of nearly all screens. No match starts in this range, so that the participant has to move the disc. */
const TYPICAL = { lowest: 1.4, highest: 3 };
const MAX_SPREAD = 0.5;
const START_DISTANCE = { min: 10, max: 60 }; // grey levels

/** Estimate gamma from the last round; matches of earlier rounds are only reported. */
export function estimateGamma(rounds: readonly (readonly Match[])[]): Estimate {
  const matches = rounds.flatMap((round, index) =>
    round.map((match) => ({ ...match, gamma: gammaFromMatch(match), round: index + 1 })),
  );
  const last = matches.filter(({ round }) => round === rounds.length);
  const usable = last.map(({ gamma }) => gamma).filter((gamma) => gamma !== null);
  const spread = standardDeviation(usable);
  const reliable = usable.length > 0 && 2 * usable.length >= last.length && (spread ?? 0) <= MAX_SPREAD;
  return { gamma: reliable ? median(usable) : null, spread, reliable, matches };
}

/**
 * Return the key of the text that says why a match is not accepted, or null. A disc that was not moved is never
 * accepted; an implausible match is accepted after one warning, as eyes and screens may be unusual.
 */
export function findObjection(match: Match, moved: boolean, warned: boolean): "gamma_untouched" | "gamma_unlikely" | null {
  if (!moved) return "gamma_untouched";
  return gammaFromMatch(match) === null && !warned ? "gamma_unlikely" : null;
}

/** Choose a start level, darker or lighter than the likely match. `random` returns numbers in [0, 1). */
export function chooseStart(share: number, random: () => number): number {
  const { min, max } = START_DISTANCE;
  const distance = min + (max - min) * random();
  const darker = random() < 0.5;
  const start = darker
    ? levelFromGamma(share, TYPICAL.lowest) - distance
    : levelFromGamma(share, TYPICAL.highest) + distance;
  return Math.round(Math.min(250, start));
}

/** Return the level that matches the dither on a screen with this gamma. */
export function levelFromGamma(share: number, gamma: number): number {
  return 255 * share ** (1 / gamma);
}

/** Return the gamma that a match implies, or null if it is implausible. */
export function gammaFromMatch({ share, level }: Match): number | null {
  const gamma = Math.log(share) / Math.log(level / 255);
  return gamma >= POSSIBLE.lowest && gamma <= POSSIBLE.highest ? gamma : null;
}

/** Return whether a pixel of the dither is white: one, two or three pixels of each square of four are. */
export function isWhitePixel(x: number, y: number, share: number): boolean {
  return (y % 2) * 2 + (x % 2) < 4 * share;
}
