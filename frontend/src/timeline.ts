/** Screens as trials of jsPsych, and the few kinds of timeline nodes the experiment is made of. */

import { type JsPsychPlugin, ParameterType, type TrialType } from "jspsych";

import { setStep } from "./dom.ts";
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
    onResult: { type: ParameterType.FUNCTION, default: undefined },
  },
  data: {
    step: { type: ParameterType.STRING },
    /** How long the screen was there. */
    rt: { type: ParameterType.FLOAT },
  },
} as const;

class ScreenPlugin implements JsPsychPlugin<typeof info> {
  static info = info;

  async trial(container: HTMLElement, trial: TrialType<typeof info>, onLoad: () => void) {
    const began = performance.now();
    setStep(trial.step);
    onLoad();
    const result = await trial.screen()(container, trial.context());
    const pending = trial.onResult(result);
    if (pending instanceof Promise) {
      // A screen that has been answered must not be answered again while its answer is dealt with.
      setStep("loading");
      container.replaceChildren();
      await pending;
    }
    return { step: trial.step, rt: performance.now() - began };
  }
}

export type Node = Record<string, any>; // as jsPsych itself describes a node

/** A screen as a step of the timeline. `make` (and `name`, if it is a function) is called when the step begins. */
export function step<Result>(
  name: string | (() => string),
  createScreen: () => Screen<Result>,
  context: () => Context,
  onResult: (result: Result) => unknown = () => {},
): Node {
  return { type: ScreenPlugin, step: name, screen: createScreen, context, onResult };
}

/** A node that only takes place if `condition` says so when its turn comes. */
export function when(condition: () => boolean, ...timeline: Node[]): Node {
  return { timeline, conditional_function: condition };
}

/** Again and again until `condition` says no; it is asked before each turn. */
export function repeatWhile(condition: () => boolean, ...timeline: Node[]): Node {
  return { timeline, conditional_function: condition, loop_function: condition };
}
