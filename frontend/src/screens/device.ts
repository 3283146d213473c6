/**
 * Check whether the device is suitable. If not, explain what is needed and what was found, and check again on changes.
 */

import { el, waitForEvent, paragraphs } from "../dom.ts";
import type { Context, DeviceResult, Screen } from "../screen.ts";
import { withTimeout, OPEN_MS } from "../storage.ts";
import { MAX_REFRESH_HZ, FrameTimer } from "../frame-timer.ts";
import type { StudyInfo } from "../wire.ts";
import { createButton, showPanel } from "./panel.ts";

/** Abilities of the browser, apart from sizes and speed. */
export interface Abilities {
  touch_only: boolean;
  storage: boolean;
  /** Has locks or channels between tabs, and recent JavaScript features. */
  modern: boolean;
  full_screen: boolean;
}

/** The key of a text and the values of its placeholders. */
export interface Problem {
  key: string;
  values?: { needed: string; found: string };
}

/** Refresh rates this close below the requirement are accepted as measurement error: 59.9 Hz counts as 60 Hz. */
const TOLERANCE = 0.02;

/** Return the first reason why this browser cannot be used, or null. */
export function findMissingAbility(abilities: Abilities, fullScreenNeeded: boolean): Problem | null {
  if (abilities.touch_only) return { key: "device_phone" };
  if (!abilities.modern) return { key: "device_browser" };
  if (!abilities.storage) return { key: "device_storage" };
  if (fullScreenNeeded && !abilities.full_screen) return { key: "device_full_screen" };
  return null;
}

/** Return a problem if the screen is too small; without full screen, the window counts. */
export function checkSize(device: DeviceResult, required: StudyInfo["display"]): Problem | null {
  const [width, height] = required.full_screen
    ? [Math.max(device.screen_width_px, device.window_width_px), Math.max(device.screen_height_px, device.window_height_px)]
    : [device.window_width_px, device.window_height_px];
  if (width >= required.window_px[0] && height >= required.window_px[1]) return null;
  return { key: "device_window", values: { needed: required.window_px.join(" × "), found: `${width} × ${height}` } };
}

/** Return a problem if the browser's frame times are implausible; some browsers round them so much that they repeat. */
export function checkFrameClock(refresh_hz: number): Problem | null {
  return refresh_hz <= MAX_REFRESH_HZ ? null : { key: "device_browser" };
}

/** Return a problem if the refresh rate is too low. */
export function checkRefresh(refresh_hz: number, required_hz: number): Problem | null {
  if (refresh_hz >= required_hz * (1 - TOLERANCE)) return null;
  return { key: "device_refresh", values: { needed: required_hz.toFixed(), found: refresh_hz.toFixed() } };
}

/** Resolve once the device is suitable; never resolve for one that is not. */
export const deviceScreen: Screen<DeviceResult> = async (container, context) => {
  const required = context.study.display;
  const waiting = el("p", { class: "patient", role: "status" }, context.text("device_checking"));
  container.replaceChildren(el("section", { class: "bare" }, waiting));
  const missing = findMissingAbility(await detectAbilities(), required.full_screen);
  if (missing) return refuse(container, context, missing);
  for (;;) {
    for (let small = checkSize(measureDevice(0), required); small; small = checkSize(measureDevice(0), required)) {
      explain(container, context, small);
      await waitForEvent(window, "resize", context.signal);
    }
    const refresh_hz = await new FrameTimer().measure();
    const untrusted = checkFrameClock(refresh_hz);
    if (untrusted) return refuse(container, context, untrusted);
    const slow = checkRefresh(refresh_hz, required.refresh_hz);
    if (!slow) return measureDevice(refresh_hz);
    const again = createButton(context, "device_again", "main", () => {});
    explain(container, context, slow, again);
    await waitForEvent(again, "click", context.signal);
    again.disabled = true;
  }
};

function refuse(container: HTMLElement, context: Context, problem: Problem): Promise<never> {
  explain(container, context, problem);
  return new Promise(() => {});
}

/** Show the problem; keep the panel if only its numbers have changed. */
function explain(container: HTMLElement, context: Context, problem: Problem, again?: HTMLButtonElement): void {
  const text = paragraphs(context.text(problem.key, problem.values && { ...problem.values }));
  const message = el("div", { role: "status", "data-testid": problem.key }, ...text);
  const existing = container.querySelector(`.panel [data-testid=${problem.key}]`);
  if (existing && !again) return existing.replaceWith(message);
  showPanel(container, context.text("refused_title"), message, ...(again ? [el("div", { class: "buttons" }, again)] : []));
  again?.focus();
}

function measureDevice(refresh_hz: number): DeviceResult {
  return {
    refresh_hz: Math.round(refresh_hz * 100) / 100,
    window_width_px: innerWidth,
    window_height_px: innerHeight,
    screen_width_px: screen.width,
    screen_height_px: screen.height,
    device_pixel_ratio: devicePixelRatio,
    touch: navigator.maxTouchPoints > 0,
  };
}

async function detectAbilities(): Promise<Abilities> {
  return {
    touch_only: matchMedia("(any-pointer: coarse)").matches && !matchMedia("(any-pointer: fine)").matches,
    storage: await canStore(),
    modern: ("locks" in navigator || "BroadcastChannel" in window) && "any" in AbortSignal,
    full_screen: document.fullscreenEnabled,
  };
}

/** Return whether IndexedDB works. Some browsers have it but refuse to open a database, or never respond. */
function canStore(): Promise<boolean> {
  const canOpen = new Promise<boolean>((resolve) => {
    const request = indexedDB.open("vseg-can-store");
    request.onerror = () => resolve(false);
    request.onsuccess = () => {
      request.result.close();
      indexedDB.deleteDatabase("vseg-can-store");
      resolve(true);
    };
  });
  return withTimeout(canOpen, OPEN_MS).catch(() => false);
}
