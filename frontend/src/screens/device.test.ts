import assert from "node:assert/strict";
import { test } from "node:test";

import { checkRefresh, checkSize, findMissingAbility, checkFrameClock } from "./device.ts";

const abilities = { touch_only: false, storage: true, modern: true, full_screen: true };
const device = {
  refresh_hz: 60, window_width_px: 900, window_height_px: 500, screen_width_px: 1280, screen_height_px: 720,
  device_pixel_ratio: 1, touch: false,
};
const required = {
  width_deg: 10, width_px: 512, dot_deg: 0.25, dot_px: 12, background: 128,
  window_px: [800, 600] as [number, number], refresh_hz: 50, full_screen: true,
};

test("a computer with a recent browser is suitable", () => {
  assert.equal(findMissingAbility(abilities, true), null);
});

test("each missing ability has its own text", () => {
  assert.equal(findMissingAbility({ ...abilities, touch_only: true, modern: false }, true)?.key, "device_phone");
  assert.equal(findMissingAbility({ ...abilities, storage: false }, true)?.key, "device_storage");
  assert.equal(findMissingAbility({ ...abilities, modern: false }, true)?.key, "device_browser");
  assert.equal(findMissingAbility({ ...abilities, full_screen: false }, true)?.key, "device_full_screen");
  assert.equal(findMissingAbility({ ...abilities, full_screen: false }, false), null);
});

test("with full screen the screen counts, without it the window, and both sizes are given", () => {
  assert.equal(checkSize(device, required), null);
  const small = checkSize(device, { ...required, full_screen: false });
  assert.deepEqual(small, { key: "device_window", values: { needed: "800 × 600", found: "900 × 500" } });
});

test("a screen just below its nominal refresh is fast enough, half of it is not", () => {
  assert.equal(checkRefresh(59.4, 60), null);
  assert.deepEqual(checkRefresh(30, 50)?.values, { needed: "50", found: "30" });
});

test("an implausible refresh rate is a problem of the browser", () => {
  for (const refresh_hz of [Infinity, NaN, 501, 1000]) assert.equal(checkFrameClock(refresh_hz)?.key, "device_browser");
  for (const refresh_hz of [30, 60, 480, 500]) assert.equal(checkFrameClock(refresh_hz), null);
});
