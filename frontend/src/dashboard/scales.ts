/** What of a chart can be calculated without drawing it. */

export interface Drawn {
  kind: "bars" | "dots";
  x: number[];
  y: number[];
  xLabel: string;
  yLabel: string;
  isTime: boolean;
}

/** Steps between the marks of an axis that counts things: 1, 2, 5, 10, 20, … */
export const WHOLE_STEPS = Array.from({ length: 21 }, (_, at) => [1, 2, 5][at % 3]! * 10 ** Math.floor(at / 3));

/** The distance between neighbouring bars. */
export function step(x: readonly number[], isTime: boolean): number {
  const gaps = x.slice(1).map((value, at) => value - x[at]!);
  return gaps.length ? Math.min(...gaps) : isTime ? 3600 : 1;
}

/** From where to where the x axis goes: whole bars, or a little room beside the first and the last dot. */
export function xRange({ kind, x, isTime }: Drawn): [number, number] {
  const [first, last] = [x[0] ?? 0, x.at(-1) ?? 1];
  const room = kind === "bars" ? step(x, isTime) / 2 : Math.max(1, 0.02 * (last - first));
  return [first - room, last + room];
}

/** From 0 to somewhat above the highest, and never to nothing. */
export function yRange(y: readonly number[]): [number, number] {
  return [0, Math.max(1, 1.08 * y.reduce((most, value) => Math.max(most, value), 0))];
}

/** A moment below the axis: the hour, or the day where a new one begins; UTC, as everywhere on these pages. */
export function timeMark(at_s: number): string {
  const at = new Date(at_s * 1000);
  const midnight = at.getUTCHours() === 0 && at.getUTCMinutes() === 0;
  const [, day, month] = at.toUTCString().split(" ");
  return midnight ? `${Number(day)} ${month}` : at.toISOString().slice(11, 16);
}
