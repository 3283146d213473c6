/** A jsPsych plugin that runs screens, and the timeline nodes of the experiment. */

import { type JsPsychPlugin, ParameterType, type TrialType } from "jspsych";

import { setStep } from "./dom.ts";
import type { Context, Screen } from "./screen.ts";

const info = {
  name: "vseg-screen",
  version: "0.1.0",
  parameters: {
    /** Name of the step, written to the page's body. */
    step: { type: ParameterType.STRING, default: undefined },
    /** Creates the screen. */
    screen: { type: ParameterType.FUNCTION, default: undefined },
    /** Returns the context of the screen. */
    context: { type: ParameterType.FUNCTION, default: undefined },
    /** Called with the screen's result; the next step waits for it. */
    onResult: { type: ParameterType.FUNCTION, default: undefined },
  },
  data: {
    step: { type: ParameterType.STRING },
    /** Duration of the screen. */
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
      // Remove the screen, so that it cannot be answered twice while its result is processed.
      setStep("loading");
      container.replaceChildren();
      await pending;
    }
    return { step: trial.step, rt: performance.now() - began };
  }
}

export type Node = Record<string, any>; // as in jsPsych's own types

/**
 * Create the timeline node of a screen. `createScreen`, and `name` if it is a function, are called when the step
 * begins.
 */
export function step<Result>(
  name: string | (() => string),
  createScreen: () => Screen<Result>,
  context: () => Context,
  onResult: (result: Result) => unknown = () => {},
): Node {
  return { type: ScreenPlugin, step: name, screen: createScreen, context, onResult };
}

/** Create a node that runs only if `condition` holds when its turn comes. */
export function when(condition: () => boolean, ...timeline: Node[]): Node {
  return { timeline, conditional_function: condition };
}

/** Create a node that repeats while `condition` holds; it is checked before each repetition. */
export function repeatWhile(condition: () => boolean, ...timeline: Node[]): Node {
  return { timeline, conditional_function: condition, loop_function: condition };
}
