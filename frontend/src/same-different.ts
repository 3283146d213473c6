/**
 * jsPsych plugin for one trial: two red circles on grey, the same circles on the image, then the question. It draws on
 * a canvas, frame by frame, and records the measured timing.
 */

import { type JsPsych, type JsPsychPlugin, ParameterType, type TrialType } from "jspsych";

import { setStep } from "./dom.ts";
import { createPhaseDrawings } from "./trial-phases.ts";
import type { TrialCanvas } from "./canvas.ts";
import { keyName } from "./screens/keys.ts";
import { type PhaseTiming, isLate, type FrameTimer } from "./frame-timer.ts";
import { watchPage } from "./visibility.ts";
import type { Response } from "./wire.ts";

/** Objects that all trials share. */
export interface Scene {
  timer: FrameTimer;
  canvas: TrialCanvas;
  /** Aborts the trial when the participant pauses. */
  interruptSignal: AbortSignal;
  /** Resolve when the pause is over. */
  waitUntilResumed: () => Promise<void>;
  /** Minimum refresh rate that the study requires. */
  min_refresh_hz: number;
}

const info = {
  name: "vseg-same-different",
  version: "0.1.0",
  parameters: {
    /** Number of the trial in the session. */
    item: { type: ParameterType.INT, default: undefined },
    /** Name of the image, as added to the canvas. */
    image: { type: ParameterType.STRING, default: undefined },
    /** The two locations x1, y1, x2, y2 in pixels of the image. */
    locations: { type: ParameterType.INT, array: true, default: undefined },
    /** Whether the server chose the pair from the answers so far. */
    chosen: { type: ParameterType.BOOL, default: false },
    /** Empty screen before the cue. */
    pause_ms: { type: ParameterType.INT, default: 0 },
    /** Circles on grey. */
    cue_ms: { type: ParameterType.INT, default: 300 },
    /** Circles on the image. */
    image_ms: { type: ParameterType.INT, default: 300 },
    /** Keys of the answers: {same, different}. */
    keys: { type: ParameterType.OBJECT, default: undefined },
    /** Text of the response screen. */
    question: { type: ParameterType.STRING, default: "" },
    /** Scene: timer, canvas and pause. */
    scene: { type: ParameterType.OBJECT, default: undefined },
  },
  data: {
    /** Whether the trial was paused and has to be repeated; the other fields are then missing. */
    interrupted: { type: ParameterType.BOOL },
    /** jsPsych's name for rt_ms. */
    rt: { type: ParameterType.FLOAT },
    /** jsPsych's name for key. */
    response: { type: ParameterType.STRING },
    kind: { type: ParameterType.STRING },
    item: { type: ParameterType.INT },
    same: { type: ParameterType.BOOL },
    rt_ms: { type: ParameterType.FLOAT },
    key: { type: ParameterType.STRING },
    shown_at_ms: { type: ParameterType.INT },
    cue_onset_ms: { type: ParameterType.FLOAT },
    cue_asked_ms: { type: ParameterType.FLOAT },
    cue_ms: { type: ParameterType.FLOAT },
    cue_frames: { type: ParameterType.INT },
    image_onset_ms: { type: ParameterType.FLOAT },
    image_asked_ms: { type: ParameterType.FLOAT },
    image_ms: { type: ParameterType.FLOAT },
    image_frames: { type: ParameterType.INT },
    response_onset_ms: { type: ParameterType.FLOAT },
    frames_dropped: { type: ParameterType.INT },
    longest_gap_ms: { type: ParameterType.FLOAT },
    refresh_hz: { type: ParameterType.FLOAT },
    visible: { type: ParameterType.BOOL },
    focused: { type: ParameterType.BOOL },
    full_screen: { type: ParameterType.BOOL },
    flags: { type: ParameterType.STRING },
    chosen: { type: ParameterType.BOOL },
  },
} as const;

type Info = typeof info;
type TrialParameters = Required<TrialType<Info>>;
type TrialAnswer = Response & { interrupted: false; rt: number; response: string };
export type Outcome = TrialAnswer | { interrupted: true };

interface KeyPress {
  key: string;
  rt_ms: number;
}

export class SameDifferent implements JsPsychPlugin<Info> {
  static info = info;
  private readonly jsPsych: JsPsych;

  constructor(jsPsych: JsPsych) {
    this.jsPsych = jsPsych;
  }

  async trial(_container: HTMLElement, trial: TrialParameters, onLoad: () => void): Promise<Outcome> {
    const scene = trial.scene as Scene;
    const keys = trial.keys as { same: string; different: string };
    setStep("trial", trial.item);
    const stopWatching = watchPage();
    const phases = createPhaseDrawings(scene.canvas, trial.image, trial.locations as number[], trial.question);
    onLoad();
    const { timer } = scene;
    await timer.waitForFrame();
    await timer.show(phases.empty, trial.pause_ms);
    const shown_at_ms = Date.now();
    const cue = await timer.show(phases.cue, trial.cue_ms);
    const image = await timer.show(phases.image, trial.image_ms);
    const onset = timer.drawNow(phases.question);
    // If the participant left during the trial, the page already shows another step.
    if (!scene.interruptSignal.aborted) setStep("response", trial.item);
    const pressed = await waitForKey([keys.same, keys.different], onset, scene.interruptSignal);
    const page = stopWatching();
    if (!pressed) {
      await scene.waitUntilResumed();
      return { interrupted: true };
    }
    const flags = [...page.flags, ...displayFlags(trial, cue, image, scene)];
    return buildAnswer(trial, pressed, pressed.key === keys.same, { shown_at_ms, cue, image, onset, scene, page, flags });
  }

  /** Simulate an answer with a plausible response time: "data-only" at once, "visual" on the real screen. */
  simulate(trial: TrialParameters, mode: string, options: { data?: Partial<Response> }, onLoad: () => void): void {
    const keys = trial.keys as { same: string; different: string };
    const same = options.data?.same ?? this.jsPsych.randomization.sampleBernoulli(0.5) === 1;
    const rt_ms = options.data?.rt_ms ?? this.jsPsych.randomization.sampleExGaussian(500, 50, 1 / 150, true);
    const key = same ? keys.same : keys.different;
    if (mode === "visual") {
      const duration = trial.pause_ms + trial.cue_ms + trial.image_ms;
      this.jsPsych.pluginAPI.pressKey(key, duration + rt_ms + 50);
      void this.trial(this.jsPsych.getDisplayElement(), trial, onLoad).then((data) => this.jsPsych.finishTrial(data));
      return;
    }
    const { timer } = trial.scene as Scene;
    const simulatePhase = (onset: number, duration_ms: number): PhaseTiming => {
      const frames = Math.round(duration_ms / timer.refresh_ms);
      const ms = frames * timer.refresh_ms;
      return { onset, ms, frames, dropped: 0, longest_gap: timer.refresh_ms, dropped_after_draw: 0 };
    };
    const cue = simulatePhase(0, trial.cue_ms);
    const image = simulatePhase(cue.ms, trial.image_ms);
    const page = { visible: true, focused: true, full_screen: false, flags: [] };
    const shown = { shown_at_ms: Date.now(), cue, image, onset: cue.ms + image.ms, scene: trial.scene as Scene };
    onLoad();
    const answer = buildAnswer(trial, { key, rt_ms }, same, { ...shown, page, flags: [] });
    this.jsPsych.finishTrial({ ...answer, ...options.data });
  }
}

/** Resolve with the first press of one of these keys after `onset`; null when the trial is interrupted. */
function waitForKey(keys: string[], onset: number, interruptSignal: AbortSignal): Promise<KeyPress | null> {
  return new Promise((resolve) => {
    if (interruptSignal.aborted) return resolve(null);
    const done = new AbortController();
    const end = (pressed: KeyPress | null) => (done.abort(), resolve(pressed));
    const signal = done.signal;
    interruptSignal.addEventListener("abort", () => end(null), { signal });
    const handleKey = (event: KeyboardEvent) => {
      const key = keyName(event);
      // Ignore keys held down since before the question, and presses queued before its onset.
      if (event.repeat || event.timeStamp < onset || key === null || !keys.includes(key)) return;
      event.preventDefault();
      end({ key, rt_ms: event.timeStamp - onset });
    };
    document.addEventListener("keydown", handleKey, { signal });
  });
}

function displayFlags(
  trial: TrialParameters,
  cue: PhaseTiming,
  image: PhaseTiming,
  { timer, min_refresh_hz }: Scene,
): string[] {
  const phases = [{ requested_ms: trial.cue_ms, measured: cue }, { requested_ms: trial.image_ms, measured: image }];
  const slow = timer.refresh_hz < 0.98 * min_refresh_hz;
  return [...(isLate(phases, timer.refresh_ms) ? ["late"] : []), ...(slow ? ["slow_refresh"] : [])];
}

interface Presentation {
  shown_at_ms: number;
  cue: PhaseTiming;
  image: PhaseTiming;
  onset: number;
  scene: Scene;
  page: { visible: boolean; focused: boolean; full_screen: boolean };
  flags: string[];
}

function buildAnswer(trial: TrialParameters, pressed: KeyPress, same: boolean, shown: Presentation): TrialAnswer {
  const { cue, image, page } = shown;
  return {
    interrupted: false,
    kind: "response",
    rt: pressed.rt_ms,
    response: pressed.key,
    item: trial.item,
    same,
    rt_ms: pressed.rt_ms,
    key: pressed.key,
    shown_at_ms: shown.shown_at_ms,
    cue_onset_ms: cue.onset,
    cue_asked_ms: trial.cue_ms,
    cue_ms: cue.ms,
    cue_frames: cue.frames,
    image_onset_ms: image.onset,
    image_asked_ms: trial.image_ms,
    image_ms: image.ms,
    image_frames: image.frames,
    response_onset_ms: shown.onset,
    frames_dropped: cue.dropped + image.dropped,
    longest_gap_ms: Math.max(cue.longest_gap, image.longest_gap),
    refresh_hz: shown.scene.timer.refresh_hz,
    visible: page.visible,
    focused: page.focused,
    full_screen: page.full_screen,
    flags: shown.flags.join(" "),
    chosen: trial.chosen,
  };
}

/** Return the record of an answer, without the fields that only jsPsych uses. */
export function toResponse({ interrupted: _interrupted, rt: _rt, response: _response, ...rest }: TrialAnswer): Response {
  return rest;
}
