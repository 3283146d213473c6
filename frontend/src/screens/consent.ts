/** The consent form. Nothing is recorded before someone agrees, and nothing if they do not. */

import { paragraphs } from "../dom.ts";
import type { Screen } from "../screen.ts";
import { choice, panel } from "./panel.ts";

/** Whether the person agrees to take part. */
export const consent: Screen<boolean> = async (place, context) => {
  const { buttons, chosen } = choice(context, ["consent_agree", "consent_decline"]);
  panel(place, context.text("consent_title"), ...paragraphs(context.text("consent")), buttons);
  buttons.classList.add("stacked");
  return (await chosen) === "consent_agree";
};
