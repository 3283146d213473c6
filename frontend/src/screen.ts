/**
 * The interface of a screen: it renders into `container`, resolves with its result, and records nothing itself. A
 * screen with parameters is created by a function, such as `feedbackScreen(true)`. When `context.signal` aborts, the
 * participant is leaving: a screen removes its listeners and may stay pending.
 */

import type { Display } from "./display.ts";
import type { StudyInfo } from "./wire.ts";

export type Screen<Result> = (container: HTMLElement, context: Context) => Promise<Result>;

export interface Context {
  /** Return the study's text with this key, with `{name}` placeholders filled in. */
  text: (key: string, values?: Record<string, string | number>) => string;
  study: StudyInfo;
  /** The keys of the answers, as chosen by the participant: "f", "arrowleft", "space". */
  keys: Keys;
  /** Aborts when the participant leaves. */
  signal: AbortSignal;
  /** The decoded image that the contours or instructions screen shows. */
  image?: HTMLImageElement;
  /** Sizes and greys from the calibration, or the study's own. */
  display: Display;
}

export interface Keys {
  same: string;
  different: string;
}

/** Result of `deviceScreen`, which resolves only if the device is suitable. */
export interface DeviceResult {
  refresh_hz: number;
  window_width_px: number;
  window_height_px: number;
  screen_width_px: number;
  screen_height_px: number;
  device_pixel_ratio: number;
  touch: boolean;
}

/** Result of `createDistanceNode`. */
export interface DistanceResult {
  px_per_mm: number;
  /** From the blind spot; null if not measured or not plausible (below 30 cm or above 1.5 m). */
  distance_mm: number | null;
  /** The single measurements of the blind spot. */
  measured_mm: number[];
  /** The zoom and monitor for which the pixels were measured. */
  device_pixel_ratio: number;
}

/** Result of `gammaScreen`. */
export interface GammaResult {
  /** Median of the last round's matches; null if they are not reliable, then images are shown uncorrected. */
  gamma: number | null;
  /** Standard deviation of the single estimates; null with fewer than two. */
  spread: number | null;
  /** Whether most matches of the last round are plausible and agree with each other. */
  reliable: boolean;
  /** For each match: share of white pixels, matched grey level, its start level, the resulting gamma, and the round. */
  matches: { share: number; level: number; start: number; gamma: number | null; round: number }[];
  device_pixel_ratio: number;
  /** Whether one pixel of the dither was one pixel of the screen. */
  one_to_one: boolean;
}

/** Result of `contoursScreen`: points in pixels of the image, and the size of the image. */
export interface ContoursResult {
  contours: [x: number, y: number][][];
  width_px: number;
  height_px: number;
}

/** Result of `leaveScreen`. */
export type Leaving = "stay" | "keep" | "withdraw";

/** Parameters of `breakScreen`. */
export interface BreakInfo {
  /** Progress in the whole experiment, 0 to 100. */
  percent: number;
  /** Minimum duration of the break. */
  at_least_s: number;
}

/**
 * Parameters of `noticeScreen`, which resolves with the `name` of the chosen action, and stays if there are no actions.
 * An action with `href` is a link, one with `file` a download. Enter activates the first action.
 */
export interface Message {
  title?: string;
  /** Paragraphs in the participant's language. */
  text: string;
  actions?: { name: string; label: string; href?: string; file?: File }[];
}

/*
The other screens:
  consent.ts      consentScreen: Screen<boolean>           whether the participant agrees
  full-screen.ts  fullScreenScreen(wasLeft): Screen<boolean>  whether full screen worked; `wasLeft`: it is requested again
  keys.ts         keysScreen: Screen<Keys>
  instructions.ts instructionsScreen: Screen<void>
  feedback.ts     feedbackScreen(right, same?): Screen<void>  `same`: the right answer, shown after a wrong one
  debriefing.ts   debriefingScreen: Screen<string>         a comment, or ""
  returning.ts    returningScreen: Screen<"same" | "new">  whether the participant was here before
*/
