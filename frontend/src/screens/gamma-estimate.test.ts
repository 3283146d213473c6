import assert from "node:assert/strict";
import { test } from "node:test";

import { estimateGamma, gammaFromMatch, levelFromGamma, findObjection, SHARES, chooseStart, isWhitePixel } from "./gamma-estimate.ts";

const match = (share: number, level: number) => ({ share, level, start: 100 });
const round = (...gammas: number[]) => gammas.map((gamma, index) => match(SHARES[index % 3]!, levelFromGamma(SHARES[index % 3]!, gamma)));

test("exact matches give the gamma of the screen, for every share", () => {
  for (const gamma of [1, 1.8, 2.2, 2.6]) {
    const estimate = estimateGamma([round(gamma, gamma, gamma)]);
    assert.ok(estimate.reliable);
    assert.ok(Math.abs(estimate.gamma! - gamma) < 1e-9);
    assert.ok(estimate.spread! < 1e-9);
  }
});

test("rounding to whole levels changes gamma by less than 0.03", () => {
  for (const share of SHARES) {
    assert.ok(Math.abs(gammaFromMatch(match(share, Math.round(levelFromGamma(share, 2.2))))! - 2.2) < 0.03);
  }
});

test("one careless match does not move the median", () => {
  const estimate = estimateGamma([[match(1 / 2, 186), match(1 / 4, 136), match(3 / 4, 224), match(1 / 2, 60)]]);
  assert.ok(Math.abs(estimate.gamma! - 2.2) < 0.05, String(estimate.gamma));
});

test("implausible matches are reported but do not count", () => {
  const estimate = estimateGamma([[match(1 / 2, 0), match(1 / 2, 186), match(1 / 2, 186)]]);
  assert.deepEqual(estimate.matches.map((m) => m.gamma !== null), [false, true, true]);
  assert.ok(estimate.reliable);
  assert.ok(Math.abs(estimate.gamma! - 2.2) < 0.01);
});

test("the estimate is not reliable if more than half of the matches are implausible", () => {
  const estimate = estimateGamma([[match(1 / 2, 0), match(1 / 2, 255), match(1 / 4, 254), match(1 / 2, 186)]]);
  assert.deepEqual([estimate.gamma, estimate.reliable, estimate.matches.length], [null, false, 4]);
});

test("the estimate is not reliable if the matches disagree", () => {
  const estimate = estimateGamma([round(1, 2.2, 3.4)]);
  assert.deepEqual([estimate.gamma, estimate.reliable], [null, false]);
  assert.ok(estimate.spread! > 1);
});

test("a second round replaces the first, whose matches are still reported", () => {
  const better = estimateGamma([round(1, 2.2, 3.4), round(2.1, 2.2, 2.3)]);
  assert.ok(better.reliable);
  assert.ok(Math.abs(better.gamma! - 2.2) < 1e-9);
  assert.deepEqual(better.matches.map((m) => m.round), [1, 1, 1, 2, 2, 2]);
  const worse = estimateGamma([round(1, 2.2, 3.4), round(1, 2.2, 3.4)]);
  assert.deepEqual([worse.gamma, worse.reliable, worse.matches.length], [null, false, 6]);
});

test("a disc that was not moved is never accepted, an implausible one only after a warning", () => {
  assert.equal(findObjection(match(1 / 2, 186), false, true), "gamma_untouched");
  assert.equal(findObjection(match(1 / 2, 20), true, false), "gamma_unlikely");
  assert.equal(findObjection(match(1 / 2, 20), true, true), null);
  assert.equal(findObjection(match(1 / 2, 186), true, false), null);
});

test("no match starts near its likely end, and each starts within the range of levels", () => {
  for (const share of SHARES) {
    for (const chance of [0, 0.3, 0.49, 0.5, 0.7, 0.999]) {
      const start = chooseStart(share, () => chance);
      assert.ok(start >= 30 && start <= 250, String(start));
      assert.ok(start < levelFromGamma(share, 1.4) - 8 || start > levelFromGamma(share, 3) + 8, String(start));
    }
  }
});

test("without a plausible match there is no gamma, and the result can be sent as JSON", () => {
  const estimate = estimateGamma([[match(1 / 2, 0), match(1 / 2, 255)]]);
  assert.equal(estimate.gamma, null);
  assert.deepEqual(JSON.parse(JSON.stringify(estimate)), estimate);
  assert.equal(estimateGamma([]).gamma, null);
});

test("the spread is the sample standard deviation", () => {
  const estimate = estimateGamma([round(2, 3)]);
  assert.ok(Math.abs(estimate.spread! - Math.SQRT1_2) < 1e-9);
});

test("the dither has exactly the given share of white pixels", () => {
  for (const share of SHARES) {
    let lit = 0;
    for (let y = 0; y < 64; y++) for (let x = 0; x < 64; x++) if (isWhitePixel(x, y, share)) lit++;
    assert.equal(lit / 64 ** 2, share);
  }
});
