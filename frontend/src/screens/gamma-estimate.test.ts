import assert from "node:assert/strict";
import { test } from "node:test";

import { estimateGamma, gammaOf, median, SHARES, white } from "./gamma-estimate.ts";

const match = (share: number, level: number) => ({ share, level, start: 100 });
const levelFor = (share: number, gamma: number) => 255 * share ** (1 / gamma);

test("an eye without error finds the gamma of its screen, whatever the share", () => {
  for (const gamma of [1, 1.8, 2.2, 2.6]) {
    const found = estimateGamma(SHARES.map((share) => match(share, levelFor(share, gamma))));
    assert.ok(Math.abs(found.gamma! - gamma) < 1e-9);
    assert.ok(found.spread! < 1e-9);
  }
});

test("levels are whole numbers, which costs less than 0.03 of gamma", () => {
  for (const share of SHARES) {
    assert.ok(Math.abs(gammaOf(match(share, Math.round(levelFor(share, 2.2))))! - 2.2) < 0.03);
  }
});

test("one careless match does not move the median", () => {
  const found = estimateGamma([match(1 / 2, 186), match(1 / 4, 136), match(3 / 4, 224), match(1 / 2, 60)]);
  assert.ok(Math.abs(found.gamma! - 2.2) < 0.05, String(found.gamma));
});

test("black, white and other impossible matches are kept but do not count", () => {
  const found = estimateGamma([match(1 / 2, 0), match(1 / 2, 255), match(1 / 4, 254), match(1 / 2, 186)]);
  assert.deepEqual(found.matches.map((m) => m.gamma !== null), [false, false, false, true]);
  assert.ok(Math.abs(found.gamma! - 2.2) < 0.01);
  assert.equal(found.spread, null);
});

test("without one usable match there is no gamma, and it travels as JSON", () => {
  const found = estimateGamma([match(1 / 2, 0), match(1 / 2, 255)]);
  assert.equal(found.gamma, null);
  assert.deepEqual(JSON.parse(JSON.stringify(found)), found);
  assert.equal(estimateGamma([]).gamma, null);
});

test("the spread is the sample standard deviation", () => {
  const found = estimateGamma([match(1 / 2, levelFor(1 / 2, 2)), match(1 / 2, levelFor(1 / 2, 3))]);
  assert.ok(Math.abs(found.spread! - Math.SQRT1_2) < 1e-9);
});

test("the dither has exactly the share of white pixels it claims", () => {
  for (const share of SHARES) {
    let lit = 0;
    for (let y = 0; y < 64; y++) for (let x = 0; x < 64; x++) if (white(x, y, share)) lit++;
    assert.equal(lit / 64 ** 2, share);
  }
});

test("median of even and odd numbers of values", () => {
  assert.equal(median([3, 1, 2]), 2);
  assert.equal(median([4, 1, 3, 2]), 2.5);
});
