/**
 * The screen's gamma from matches of a plain patch to a fine dither, after To et al. (2013).
 *
 * A dither with a share s of white pixels has the luminance s, whatever the gamma. A plain patch of level v that
 * looks the same has the luminance (v/255)^gamma, so gamma = ln s / ln(v/255).
 */

export interface Match {
  share: number;
  level: number;
  start: number;
}

export interface Estimate {
  /** Median over the usable matches; null when there is none. */
  gamma: number | null;
  /** Their standard deviation; null below two. */
  spread: number | null;
  matches: (Match & { gamma: number | null })[];
}

/** Shares of white pixels, asked in turn. */
export const SHARES = [1 / 2, 1 / 4, 3 / 4] as const;

/** No screen is outside; a match that says so was not made by looking. */
const PLAUSIBLE = { lowest: 0.5, highest: 5 };

/** What all matches say together. */
export function estimateGamma(matches: readonly Match[]): Estimate {
  const judged = matches.map((match) => ({ ...match, gamma: gammaOf(match) }));
  const usable = judged.map((match) => match.gamma).filter((gamma) => gamma !== null);
  return { gamma: median(usable), spread: deviation(usable), matches: judged };
}

/** What one match says; null if no screen could look like that. */
export function gammaOf({ share, level }: Match): number | null {
  const gamma = Math.log(share) / Math.log(level / 255);
  return gamma >= PLAUSIBLE.lowest && gamma <= PLAUSIBLE.highest ? gamma : null;
}

/** Whether a pixel of the dither is white: one, two or three of each square of four. */
export function white(x: number, y: number, share: number): boolean {
  return (y % 2) * 2 + (x % 2) < 4 * share;
}

export function median(numbers: readonly number[]): number | null {
  if (numbers.length === 0) return null;
  const sorted = [...numbers].sort((a, b) => a - b);
  return (sorted[(sorted.length - 1) >> 1]! + sorted[sorted.length >> 1]!) / 2;
}

function deviation(numbers: readonly number[]): number | null {
  if (numbers.length < 2) return null;
  const mean = numbers.reduce((sum, number) => sum + number, 0) / numbers.length;
  const squares = numbers.reduce((sum, number) => sum + (number - mean) ** 2, 0);
  return Math.sqrt(squares / (numbers.length - 1));
}
