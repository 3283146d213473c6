/** jsPsych plugin that shows the whole image before its trials, so that participants can choose their segments. */

import { type JsPsychPlugin, ParameterType, type TrialType } from "jspsych";

import { setStep } from "./dom.ts";
import type { TrialCanvas } from "./canvas.ts";
import type { FrameTimer } from "./frame-timer.ts";

const info = {
  name: "vseg-preview",
  version: "0.1.0",
  parameters: {
    /** Name of the image, as added to the canvas. */
    image: { type: ParameterType.STRING, default: undefined },
    preview_ms: { type: ParameterType.INT, default: 3000 },
    /** Caption above the image, if there is enough space. */
    caption: { type: ParameterType.STRING, default: "" },
    /** {timer, canvas}. */
    scene: { type: ParameterType.OBJECT, default: undefined },
  },
  data: {
    image: { type: ParameterType.STRING },
    /** Measured duration. */
    preview_ms: { type: ParameterType.FLOAT },
  },
} as const;

export class Preview implements JsPsychPlugin<typeof info> {
  static info = info;

  async trial(_container: HTMLElement, trial: Required<TrialType<typeof info>>, onLoad: () => void) {
    const { timer, canvas } = trial.scene as { timer: FrameTimer; canvas: TrialCanvas };
    setStep("preview");
    const picture = canvas.prepareImage(trial.image);
    onLoad();
    await timer.waitForFrame();
    const { ms } = await timer.show(() => {
      canvas.drawImage(picture);
      canvas.drawCaption(picture, trial.caption);
    }, trial.preview_ms);
    canvas.drawBackground();
    return { image: trial.image, preview_ms: ms };
  }
}
