import assert from "node:assert/strict";
import { test } from "node:test";

import { distanceFromOffset, dotPosition, isPossible, isScattered } from "./blind-spot.ts";

test("the blind spot lies at 13.5 degrees: 144 mm at a distance of 60 cm", () => {
  assert.ok(Math.abs(distanceFromOffset(144.05 * 4, 4) - 600) < 0.1);
});

test("the dot's speed does not depend on the frame rate", () => {
  assert.equal(dotPosition(800, 0), 800);
  assert.equal(dotPosition(800, 1000), 680);
  assert.equal(dotPosition(800, 500), 740);
});

test("a dot that reached the edge starts again", () => {
  assert.ok(Math.abs(dotPosition(600, 5000) - 600) < 1e-9);
  assert.ok(Math.abs(dotPosition(600, 6000) - 480) < 1e-9);
});

test("measurements that differ by a fifth of their mean are scattered, a single one is not", () => {
  assert.deepEqual([[600], [580, 600, 620], [400, 600, 800], []].map(isScattered), [false, false, true, false]);
});

test("implausible distances are rejected", () => {
  assert.deepEqual([299, 300, 600, 1500, 1501, NaN].map(isPossible), [false, true, true, true, false, false]);
});
