/**
 * The screen's gamma from matches of a plain patch to a fine dither, after To et al. (2013).
 *
 * A dither with a share s of white pixels has the luminance s, whatever the gamma. A plain patch of level v that
 * looks the same has the luminance (v/255)^gamma, so gamma = ln s / ln(v/255).
 */

import { standardDeviation, median } from "./numbers.ts";

export interface Match {
  share: number;
  level: number;
  start: number;
}

/** A match, what it says, and in which round it was made. */
export type JudgedMatch = Match & { gamma: number | null; round: number };

export interface Estimate {
  /** Median over the possible matches of the last round; null where they are not reliable. */
  gamma: number | null;
  /** Their standard deviation; null below two. */
  spread: number | null;
  /** Whether the last round had possible matches enough, and they agreed. */
  reliable: boolean;
  /** All of them, also those that do not count. */
  matches: JudgedMatch[];
}

/** Shares of white pixels, asked in turn. */
export const SHARES = [1 / 2, 1 / 4, 3 / 4] as const;

/** No screen is outside; a match that says so was not made by looking. */
const POSSIBLE = { lowest: 0.5, highest: 5 };
/** Where nearly all screens are: no match starts there, so that each is made by moving. */
const TYPICAL = { lowest: 1.4, highest: 3 };
const MAX_SPREAD = 0.5;
const START_DISTANCE = { min: 10, max: 60 }; // levels

/** What the matches say together; the last round replaces the ones before it. */
export function estimateGamma(rounds: readonly (readonly Match[])[]): Estimate {
  const matches = rounds.flatMap((made, index) =>
    made.map((match) => ({ ...match, gamma: gammaFromMatch(match), round: index + 1 })),
  );
  const last = matches.filter(({ round }) => round === rounds.length);
  const usable = last.map(({ gamma }) => gamma).filter((gamma) => gamma !== null);
  const spread = standardDeviation(usable);
  const reliable = usable.length > 0 && 2 * usable.length >= last.length && (spread ?? 0) <= MAX_SPREAD;
  return { gamma: reliable ? median(usable) : null, spread, reliable, matches };
}

/**
 * Why a match is not taken as it is: the text that says so. A disc that was never moved is never taken; one that no
 * screen could show like that is asked about once, for eyes and screens may be odd.
 */
export function findObjection(match: Match, moved: boolean, warned: boolean): "gamma_untouched" | "gamma_unlikely" | null {
  if (!moved) return "gamma_untouched";
  return gammaFromMatch(match) === null && !warned ? "gamma_unlikely" : null;
}

/** Where a match starts: darker or lighter, at some distance from where it will probably end. `random` is in [0, 1). */
export function chooseStart(share: number, random: () => number): number {
  const { min, max } = START_DISTANCE;
  const distance = min + (max - min) * random();
  const darker = random() < 0.5;
  const start = darker ? levelFromGamma(share, TYPICAL.lowest) - distance : levelFromGamma(share, TYPICAL.highest) + distance;
  return Math.round(Math.min(250, start));
}

/** The level that looks like the dither on a screen of that gamma. */
export function levelFromGamma(share: number, gamma: number): number {
  return 255 * share ** (1 / gamma);
}

/** What one match says; null if no screen could look like that. */
export function gammaFromMatch({ share, level }: Match): number | null {
  const gamma = Math.log(share) / Math.log(level / 255);
  return gamma >= POSSIBLE.lowest && gamma <= POSSIBLE.highest ? gamma : null;
}

/** Whether a pixel of the dither is white: one, two or three of each square of four. */
export function isWhitePixel(x: number, y: number, share: number): boolean {
  return (y % 2) * 2 + (x % 2) < 4 * share;
}
