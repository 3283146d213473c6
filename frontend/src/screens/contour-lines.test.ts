import assert from "node:assert/strict";
import { test } from "node:test";

import { closeIfNear, type Line, MAX_BYTES, packLines, simplifyLine } from "./contour-lines.ts";

const circle = (points: number, radius: number): Line =>
  Array.from({ length: points }, (_, k) => {
    const angle = (2 * Math.PI * k) / (points - 1);
    return [256 + radius * Math.cos(angle), 256 + radius * Math.sin(angle)];
  });

test("a straight line keeps only its ends", () => {
  const line: Line = Array.from({ length: 100 }, (_, k) => [k, 2 * k]);
  assert.deepEqual(simplifyLine(line, 0.5), [[0, 0], [99, 198]]);
});

test("points of a simplified line stay within the tolerance", () => {
  const simplified = simplifyLine(circle(2000, 100), 0.5);
  assert.ok(simplified.length < 60, String(simplified.length));
  for (const [x, y] of simplified) assert.ok(Math.abs(Math.hypot(x - 256, y - 256) - 100) < 1e-9);
});

test("a closed curve stays closed, although its ends are the same point", () => {
  const simplified = simplifyLine(circle(2000, 100), 0.5);
  assert.ok(Math.hypot(simplified[0]![0] - simplified.at(-1)![0], simplified[0]![1] - simplified.at(-1)![1]) < 1e-9);
});

test("a curve that ends near its start is closed, a short one is left alone", () => {
  const nearly = circle(100, 50).slice(0, 99);
  assert.deepEqual(closeIfNear(nearly, 8).at(-1), nearly[0]);
  assert.equal(closeIfNear([[0, 0], [3, 3]], 8).length, 2);
});

test("any drawing fits into one record", () => {
  const scribble: Line[] = Array.from({ length: 400 }, (_, line) =>
    Array.from({ length: 300 }, (_, k) => [(k * 37 + line * 11) % 511, (k * 91 + line * 7) % 509] as [number, number]),
  );
  assert.ok(JSON.stringify(scribble).length > 10 * MAX_BYTES);
  assert.ok(JSON.stringify(packLines(scribble)).length <= MAX_BYTES);
});

test("single points are omitted", () => {
  assert.deepEqual(packLines([[[1, 1]], [], [[0, 0], [10.04, 0]]]), [[[0, 0], [10, 0]]]);
});
