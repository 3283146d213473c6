import assert from "node:assert/strict";
import { test } from "node:test";

import { standardDeviation, mean, median } from "./numbers.ts";

test("median of even and odd numbers of values, and of none", () => {
  assert.equal(median([3, 1, 2]), 2);
  assert.equal(median([4, 1, 3, 2]), 2.5);
  assert.equal(median([]), null);
});

test("the standard deviation is that of a sample, and null for one value", () => {
  assert.equal(mean([2, 3]), 2.5);
  assert.ok(Math.abs(standardDeviation([2, 3])! - Math.SQRT1_2) < 1e-12);
  assert.equal(standardDeviation([2]), null);
});
