/** Will this device do? Says why not, with what is needed and what was found, and looks again when it changes. */

import { el, once, paragraphs } from "../dom.ts";
import type { Context, DeviceFound, Screen } from "../screen.ts";
import { withTimeout, OPEN_MS } from "../storage.ts";
import { FASTEST_HZ, FrameTimer } from "../frame-timer.ts";
import type { StudyInfo } from "../wire.ts";
import { button, panel } from "./panel.ts";

/** What the browser can do, apart from sizes and speed. */
export interface Abilities {
  touch_only: boolean;
  storage: boolean;
  /** A way for two tabs to know of each other, and the rest of what this page is written in. */
  modern: boolean;
  full_screen: boolean;
}

/** A text and what goes into its braces. */
export interface Problem {
  key: string;
  values?: { needed: string; found: string };
}

/** Below the asked refresh by less than this share is a matter of measurement: 59.9 Hz is 60 Hz. */
const TOLERANCE = 0.02;

/** The first reason why this browser cannot be used; null if there is none. */
export function unable(abilities: Abilities, fullScreenNeeded: boolean): Problem | null {
  if (abilities.touch_only) return { key: "device_phone" };
  if (!abilities.modern) return { key: "device_browser" };
  if (!abilities.storage) return { key: "device_storage" };
  if (fullScreenNeeded && !abilities.full_screen) return { key: "device_full_screen" };
  return null;
}

/** Whether the screen, which full screen will fill, is large enough. Without full screen the window counts. */
export function tooSmall(found: DeviceFound, asked: StudyInfo["display"]): Problem | null {
  const [width, height] = asked.full_screen
    ? [Math.max(found.screen_width_px, found.window_width_px), Math.max(found.screen_height_px, found.window_height_px)]
    : [found.window_width_px, found.window_height_px];
  if (width >= asked.window_px[0] && height >= asked.window_px[1]) return null;
  return { key: "device_window", values: { needed: asked.window_px.join(" × "), found: `${width} × ${height}` } };
}

/** Whether the browser's clock of frames can be trusted: some blur it so much that no time passes between them. */
export function unbelievable(refresh_hz: number): Problem | null {
  return refresh_hz <= FASTEST_HZ ? null : { key: "device_browser" };
}

/** Whether the screen is fast enough. */
export function tooSlow(refresh_hz: number, asked_hz: number): Problem | null {
  if (refresh_hz >= asked_hz * (1 - TOLERANCE)) return null;
  return { key: "device_refresh", values: { needed: asked_hz.toFixed(), found: refresh_hz.toFixed() } };
}

/** Resolves only for a device that will do. */
export const device: Screen<DeviceFound> = async (place, context) => {
  const asked = context.study.display;
  const waiting = el("p", { class: "patient", role: "status" }, context.text("device_checking"));
  place.replaceChildren(el("section", { class: "bare" }, waiting));
  const never = unable(await abilities(), asked.full_screen);
  if (never) return refuse(place, context, never);
  for (;;) {
    for (let small = tooSmall(sizes(0), asked); small; small = tooSmall(sizes(0), asked)) {
      explain(place, context, small);
      await once(window, "resize", context.signal);
    }
    const refresh_hz = await new FrameTimer().measure();
    const blurred = unbelievable(refresh_hz);
    if (blurred) return refuse(place, context, blurred);
    const slow = tooSlow(refresh_hz, asked.refresh_hz);
    if (!slow) return sizes(refresh_hz);
    const again = button(context, "device_again", "main", () => {});
    explain(place, context, slow, again);
    await once(again, "click", context.signal);
    again.disabled = true;
  }
};

function refuse(place: HTMLElement, context: Context, problem: Problem): Promise<never> {
  explain(place, context, problem);
  return new Promise(() => {});
}

/** The reason, on a sheet that stays while its numbers change. */
function explain(place: HTMLElement, context: Context, problem: Problem, again?: HTMLButtonElement): void {
  const words = paragraphs(context.text(problem.key, problem.values && { ...problem.values }));
  const message = el("div", { role: "status", "data-testid": problem.key }, ...words);
  const shown = place.querySelector(`.panel [data-testid=${problem.key}]`);
  if (shown && !again) return shown.replaceWith(message);
  panel(place, context.text("refused_title"), message, ...(again ? [el("div", { class: "buttons" }, again)] : []));
  again?.focus();
}

function sizes(refresh_hz: number): DeviceFound {
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

async function abilities(): Promise<Abilities> {
  return {
    touch_only: matchMedia("(any-pointer: coarse)").matches && !matchMedia("(any-pointer: fine)").matches,
    storage: await canStore(),
    modern: ("locks" in navigator || "BroadcastChannel" in window) && "any" in AbortSignal,
    full_screen: document.fullscreenEnabled,
  };
}

/** Some browsers have IndexedDB and refuse to open anything, or never answer: only trying tells. */
function canStore(): Promise<boolean> {
  const tried = new Promise<boolean>((resolve) => {
    const request = indexedDB.open("vseg-can-store");
    request.onerror = () => resolve(false);
    request.onsuccess = () => {
      request.result.close();
      indexedDB.deleteDatabase("vseg-can-store");
      resolve(true);
    };
  });
  return withTimeout(tried, OPEN_MS).catch(() => false);
}
