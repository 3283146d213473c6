/** Convert drawn lines to data: fewer points, rounded to tenths of a pixel, small enough for one record. */

export type Point = [x: number, y: number];
export type Line = Point[];

/** Maximum size of the lines, below the limit of a record. */
export const MAX_BYTES = 60_000;

/** Simplify the lines, in image pixels, until they fit into `maxBytes`. */
export function packLines(lines: readonly Line[], maxBytes: number = MAX_BYTES): Line[] {
  for (let tolerance = 0.5; ; tolerance *= 2) {
    const packed = lines.filter((line) => line.length > 1).map((line) => roundPoints(simplifyLine(line, tolerance)));
    if (JSON.stringify(packed).length <= maxBytes) return packed;
    if (tolerance > 1e4) return packed.slice(0, Math.floor(maxBytes / 40));
  }
}

/** Simplify a line with the Ramer-Douglas-Peucker algorithm: omit points closer than `tolerance` to the result. */
export function simplifyLine(line: Line, tolerance: number): Line {
  const indices = new Set([0, line.length - 1]);
  const parts: [number, number][] = [[0, line.length - 1]];
  for (let part = parts.pop(); part; part = parts.pop()) {
    const [from, to] = part;
    const far = findFarthest(line, from, to);
    if (far.distance <= tolerance) continue;
    indices.add(far.index);
    parts.push([from, far.index], [far.index, to]);
  }
  return line.filter((_, index) => indices.has(index));
}

/** Close the line by repeating its first point if it ends within `near` of it. */
export function closeIfNear(line: Line, near: number): Line {
  const [first, last] = [line[0]!, line.at(-1)!];
  const goesRound = line.some((point) => distanceBetween(first, point) > 2 * near);
  return goesRound && distanceBetween(first, last) <= near ? [...line, first] : line;
}

function findFarthest(line: Line, from: number, to: number): { index: number; distance: number } {
  let best = { index: from, distance: 0 };
  for (let index = from + 1; index < to; index++) {
    const distance = distanceToSegment(line[index]!, line[from]!, line[to]!);
    if (distance > best.distance) best = { index, distance };
  }
  return best;
}

function distanceToSegment(point: Point, from: Point, to: Point): number {
  const [dx, dy] = [to[0] - from[0], to[1] - from[1]];
  const along = ((point[0] - from[0]) * dx + (point[1] - from[1]) * dy) / (dx * dx + dy * dy || 1);
  const t = Math.min(1, Math.max(0, along));
  return distanceBetween(point, [from[0] + t * dx, from[1] + t * dy]);
}

function distanceBetween(a: Point, b: Point): number {
  return Math.hypot(a[0] - b[0], a[1] - b[1]);
}

function roundPoints(line: Line): Line {
  return line.map(([x, y]) => [Math.round(x * 10) / 10, Math.round(y * 10) / 10]);
}
