/**
 * What a screen is: it shows itself in `place`, resolves with what it found, and records nothing itself.
 * A screen that needs to be told something is made by a function: `feedback(true)` is a screen.
 * When `context.signal` aborts, the participant is leaving: a screen lets go of its listeners and may stay pending.
 */

import type { Display } from "./display.ts";
import type { StudyInfo } from "./wire.ts";

export type Screen<Result> = (container: HTMLElement, context: Context) => Promise<Result>;

export interface Context {
  /** The study's text of that key, `{name}`s filled in. */
  text: (key: string, values?: Record<string, string | number>) => string;
  study: StudyInfo;
  /** The answers' keys, as the participant chose them: "f", "arrowleft", "space". */
  keys: Keys;
  /** Aborts when the participant leaves. */
  signal: AbortSignal;
  /** The picture a screen is about, already decoded: contours, instructions. */
  image?: HTMLImageElement;
  /** Sizes and greys as the calibration found them, or the study's own. */
  display: Display;
}

export interface Keys {
  same: string;
  different: string;
}

/** screens/device.ts: `device: Screen<DeviceFound>`; resolves only for a device that will do. */
export interface DeviceResult {
  refresh_hz: number;
  window_width_px: number;
  window_height_px: number;
  screen_width_px: number;
  screen_height_px: number;
  device_pixel_ratio: number;
  touch: boolean;
}

/** screens/distance.ts: `distance(context, found): JsPsychTimeline`, calling `found` once at its end. */
export interface DistanceResult {
  px_per_mm: number;
  /** From the blind spot; null where it was not measured, or is not possible (below 30 cm, above 1.5 m). */
  distance_mm: number | null;
  /** Each measurement of the blind spot. */
  measured_mm: number[];
  /** The pixels are those of this zoom, on this monitor. */
  device_pixel_ratio: number;
}

/** screens/gamma.ts: `gamma: Screen<GammaFound>`. */
export interface GammaResult {
  /** Median of the matches of the last round; null if they are not reliable: then show without correction. */
  gamma: number | null;
  /** Standard deviation of the single estimates; null below two. */
  spread: number | null;
  /** Whether most of the last round's matches are possible on some screen, and agree with each other. */
  reliable: boolean;
  /** One a match: share of white pixels, the grey matched to it, where that began, the gamma it means, its round. */
  matches: { share: number; level: number; start: number; gamma: number | null; round: number }[];
  device_pixel_ratio: number;
  /** Whether a pixel of the dither was a pixel of the screen. */
  one_to_one: boolean;
}

/** screens/contours.ts: `contours: Screen<ContoursFound>`; x, y in pixels of the image, whose size comes along. */
export interface ContoursResult {
  contours: [x: number, y: number][][];
  width_px: number;
  height_px: number;
}

/** screens/leave.ts: `leaving: Screen<Leaving>`. */
export type Leaving = "stay" | "keep" | "withdraw";

/** screens/break.ts: `rest(pause): Screen<void>`. */
export interface BreakInfo {
  /** Of the whole experiment, 0 to 100. */
  percent: number;
  /** The shortest rest. */
  at_least_s: number;
}

/**
 * screens/notice.ts: `notice(said): Screen<string>`; resolves with the `name` of the action chosen; with no actions
 * it stays. A link leads away, a file is saved. Enter presses the first action.
 */
export interface Message {
  title?: string;
  /** Paragraphs, already in the participant's language. */
  text: string;
  actions?: { name: string; label: string; href?: string; file?: File }[];
}

/*
The other screens:
  consent.ts      consent: Screen<boolean>                 whether they agree
  full-screen.ts  fullScreen(left: boolean): Screen<boolean>  `left`: it was left and is asked for again; whether it worked
  keys.ts         keys: Screen<Keys>
  instructions.ts instructions: Screen<void>
  feedback.ts     feedback(right: boolean, same?: boolean): Screen<void>  `same`: the true answer, said if they were wrong
  debriefing.ts   debriefing: Screen<string>               a comment, or ""
*/
