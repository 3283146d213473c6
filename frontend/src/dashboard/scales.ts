/** Calculations for charts that need no drawing. */

export interface ChartData {
  kind: "bars" | "dots";
  x: number[];
  y: number[];
  xLabel: string;
  yLabel: string;
  isTime: boolean;
}

/** Steps between the marks of an axis with counts: 1, 2, 5, 10, 20, … */
export const WHOLE_STEPS = Array.from({ length: 21 }, (_, index) => [1, 2, 5][index % 3]! * 10 ** Math.floor(index / 3));

/** Return the distance between neighbouring bars. */
export function barSpacing(x: readonly number[], isTime: boolean): number {
  const gaps = x.slice(1).map((value, index) => value - x[index]!);
  return gaps.length ? Math.min(...gaps) : isTime ? 3600 : 1;
}

/** Return the range of the x axis: whole bars, or a small margin beside the first and last dot. */
export function xRange({ kind, x, isTime }: ChartData): [number, number] {
  const [first, last] = [x[0] ?? 0, x.at(-1) ?? 1];
  const margin = kind === "bars" ? barSpacing(x, isTime) / 2 : Math.max(1, 0.02 * (last - first));
  return [first - margin, last + margin];
}

/** Return the range of the y axis: from 0 to slightly above the maximum, at least 1. */
export function yRange(y: readonly number[]): [number, number] {
  return [0, Math.max(1, 1.08 * y.reduce((most, value) => Math.max(most, value), 0))];
}

/** Format the label of a time: the day at midnight, otherwise the time of day; UTC, as everywhere on these pages. */
export function formatTime(time_s: number): string {
  const time = new Date(time_s * 1000);
  const midnight = time.getUTCHours() === 0 && time.getUTCMinutes() === 0;
  const [, day, month] = time.toUTCString().split(" ");
  return midnight ? `${Number(day)} ${month}` : time.toISOString().slice(11, 16);
}
