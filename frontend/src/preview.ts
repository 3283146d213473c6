/** The whole image for a while, before its questions: time to choose one's segments. */

import { type JsPsychPlugin, ParameterType, type TrialType } from "jspsych";

import { mark } from "./dom.ts";
import type { Easel } from "./easel.ts";
import type { Stage } from "./stage.ts";

const info = {
  name: "vseg-preview",
  version: "0.1.0",
  parameters: {
    /** Name of the image, known to the easel. */
    image: { type: ParameterType.STRING, default: undefined },
    preview_ms: { type: ParameterType.INT, default: 3000 },
    /** Said above the image, if there is room. */
    words: { type: ParameterType.STRING, default: "" },
    /** Stage and easel. */
    scene: { type: ParameterType.OBJECT, default: undefined },
  },
  data: {
    image: { type: ParameterType.STRING },
    /** How long it was really there. */
    preview_ms: { type: ParameterType.FLOAT },
  },
} as const;

export class Preview implements JsPsychPlugin<typeof info> {
  static info = info;

  async trial(_place: HTMLElement, trial: Required<TrialType<typeof info>>, loaded: () => void) {
    const { stage, easel } = trial.scene as { stage: Stage; easel: Easel };
    mark("preview");
    const picture = easel.picture(trial.image);
    loaded();
    await stage.ready();
    const { ms } = await stage.show(() => {
      easel.show(picture);
      easel.caption(picture, trial.words);
    }, trial.preview_ms);
    easel.background();
    return { image: trial.image, preview_ms: ms };
  }
}
