/** Screens as trials of jsPsych, and the few kinds of timeline nodes the experiment is made of. */

import { type JsPsychPlugin, ParameterType, type TrialType } from "jspsych";

import { mark } from "./dom.ts";
import type { Context, Screen } from "./screen.ts";

const info = {
  name: "vseg-screen",
  version: "0.1.0",
  parameters: {
    /** The step's name, on the page's body. */
    step: { type: ParameterType.STRING, default: undefined },
    /** Makes the screen. */
    screen: { type: ParameterType.FUNCTION, default: undefined },
    /** What the screen may know. */
    context: { type: ParameterType.FUNCTION, default: undefined },
    /** Takes the screen's result; the next step waits for it. */
    then: { type: ParameterType.FUNCTION, default: undefined },
  },
  data: {
    step: { type: ParameterType.STRING },
    /** How long the screen was there. */
    rt: { type: ParameterType.FLOAT },
  },
} as const;

class ScreenPlugin implements JsPsychPlugin<typeof info> {
  static info = info;

  async trial(place: HTMLElement, trial: TrialType<typeof info>, loaded: () => void) {
    const began = performance.now();
    mark(trial.step);
    loaded();
    const result = await trial.screen()(place, trial.context());
    const time = trial.then(result);
    if (time instanceof Promise) {
      // A screen that has been answered must not be answered again while its answer is dealt with.
      mark("loading");
      place.replaceChildren();
      await time;
    }
    return { step: trial.step, rt: performance.now() - began };
  }
}

export type Node = Record<string, any>; // as jsPsych itself describes a node

/** A screen as a step of the timeline. `make` (and `name`, if it is a function) is called when the step begins. */
export function step<Result>(
  name: string | (() => string),
  make: () => Screen<Result>,
  context: () => Context,
  then: (result: Result) => unknown = () => {},
): Node {
  return { type: ScreenPlugin, step: name, screen: make, context, then };
}

/** A node that only takes place if `needed` says so when its turn comes. */
export function when(needed: () => boolean, ...timeline: Node[]): Node {
  return { timeline, conditional_function: needed };
}

/** Again and again until `more` says no; it is asked before each turn. */
export function repeatWhile(more: () => boolean, ...timeline: Node[]): Node {
  return { timeline, conditional_function: more, loop_function: more };
}
