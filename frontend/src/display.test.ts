import assert from "node:assert/strict";
import { test } from "node:test";

import { computeDisplay, fitSize, inverseGammaTable } from "./display.ts";
import type { StudyInfo } from "./wire.ts";

const study = {
  display: { width_deg: 10, width_px: 512, dot_deg: 0.25, dot_px: 12, background: 128 },
  calibration: { image_gamma: 2.2 },
} as StudyInfo;

const calibration = { measured_mm: [], device_pixel_ratio: 1 };

test("ten degrees seen from 57.3 cm are about ten centimetres", () => {
  const shown = computeDisplay(study, { px_per_mm: 4, distance_mm: 573, ...calibration });
  assert.ok(Math.abs(shown.width_px / 4 - 100.26) < 0.1, `${shown.width_px / 4} mm`);
  assert.ok(Math.abs(shown.dot_px / 4 - 2.5) < 0.01);
  assert.ok(Math.abs(shown.px_per_deg! - 40) < 0.1);
});

test("degrees() inverts the conversion to pixels, at any size", () => {
  for (const width_deg of [1, 10, 40]) {
    const wide = { ...study, display: { ...study.display, width_deg } };
    const shown = computeDisplay(wide, { px_per_mm: 4, distance_mm: 573, ...calibration });
    assert.ok(Math.abs(shown.degrees(shown.width_px)! - width_deg) < 1e-9);
    const half = (360 / Math.PI) * Math.atan(Math.tan((width_deg * Math.PI) / 360) / 2);
    assert.ok(Math.abs(shown.degrees(shown.width_px / 2)! - half) < 1e-9);
  }
  assert.equal(computeDisplay(study).degrees(512), null);
});

test("without a distance, the study's own pixels are used", () => {
  for (const distance of [undefined, null, { px_per_mm: 4, distance_mm: null, ...calibration }]) {
    const shown = computeDisplay(study, distance);
    assert.deepEqual([shown.width_px, shown.dot_px, shown.px_per_deg], [512, 12, null]);
  }
});

test("a screen with the image's own gamma, or not measured, changes nothing", () => {
  const same = Array.from({ length: 256 }, (_, value) => value);
  assert.deepEqual([...inverseGammaTable(2.2, 2.2)], same);
  assert.deepEqual([...inverseGammaTable(2.2, null)], same);
});

test("through the table, luminance follows the image's values to the power of its gamma", () => {
  for (const screen of [1.6, 2.0, 2.4, 2.8]) {
    const lut = inverseGammaTable(2.2, screen);
    for (const value of [0, 40, 128, 200, 255]) {
      const luminance = (lut[value]! / 255) ** screen;
      assert.ok(Math.abs(luminance - (value / 255) ** 2.2) < 0.006);
    }
  }
});

test("the background is mapped through the table", () => {
  const matches = { gamma: 1.8, spread: 0.1, matches: [] };
  const shown = computeDisplay(study, null, matches);
  assert.equal(shown.background, inverseGammaTable(2.2, 1.8)[128]);
  assert.equal(shown.gamma, 1.8);
});

test("an image larger than the window is shrunk, keeping its aspect ratio", () => {
  const tall = { width_px: 100, height_px: 200 };
  assert.deepEqual(fitSize(tall, 300, { width: 1000, height: 400 }), { width: 200, height: 400 });
  assert.deepEqual(fitSize(tall, 150, { width: 1000, height: 400 }), { width: 150, height: 300 });
});
