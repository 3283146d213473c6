/** The consent form. Nothing is recorded before the participant agrees. */

import { paragraphs } from "../dom.ts";
import type { Screen } from "../screen.ts";
import { createChoice, showPanel } from "./panel.ts";

/** Resolve with whether the participant agrees to take part. */
export const consentScreen: Screen<boolean> = async (container, context) => {
  const { buttons, chosen } = createChoice(context, ["consent_agree", "consent_decline"]);
  showPanel(container, context.text("consent_title"), ...paragraphs(context.text("consent")), buttons);
  buttons.classList.add("stacked");
  return (await chosen) === "consent_agree";
};
