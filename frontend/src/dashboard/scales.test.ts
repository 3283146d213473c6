import assert from "node:assert/strict";
import { test } from "node:test";

import { type ChartData, formatTime, WHOLE_STEPS, xRange, yRange } from "./scales.ts";

const createChart = (changes: Partial<ChartData>): ChartData => ({
  kind: "bars", x: [1, 3, 5], y: [1, 2, 3], xLabel: "x", yLabel: "y", isTime: false, ...changes,
});

test("the first and last bar are drawn completely, even a single one", () => {
  assert.deepEqual(xRange(createChart({})), [0, 6]);
  assert.deepEqual(xRange(createChart({ x: [4] })), [3.5, 4.5]);
  assert.deepEqual(xRange(createChart({ x: [7200], isTime: true })), [5400, 9000]);
});

test("dots have a margin beside them", () => {
  assert.deepEqual(xRange(createChart({ kind: "dots", x: [1, 101] })), [-1, 103]);
});

test("the y axis goes from 0 to above the maximum, also for no values and very many", () => {
  assert.deepEqual(yRange([]), [0, 1]);
  assert.deepEqual(yRange([0, 0]), [0, 1]);
  assert.ok(yRange(Array.from({ length: 300_000 }, () => 100))[1] > 100);
});

test("counts have whole marks", () => {
  assert.deepEqual(WHOLE_STEPS.slice(0, 5), [1, 2, 5, 10, 20]);
});

test("times are formatted as hours, and midnight as a day", () => {
  assert.equal(formatTime(Date.UTC(2026, 10, 16) / 1000), "16 Nov");
  assert.equal(formatTime(Date.UTC(2026, 10, 6, 8) / 1000), "08:00");
});
