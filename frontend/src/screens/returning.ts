/** Ask whose session is stored on this computer, which may be shared. */

import { paragraphs } from "../dom.ts";
import type { Screen } from "../screen.ts";
import { createChoice, showPanel } from "./panel.ts";

/** Resolve with whether the participant continues that session or is someone new. */
export const returningScreen: Screen<"same" | "new"> = async (container, context) => {
  const { buttons, first, chosen } = createChoice(context, ["returning_go_on", "returning_new"]);
  showPanel(container, context.text("returning_title"), ...paragraphs(context.text("returning")), buttons);
  buttons.classList.add("stacked");
  first.focus({ preventScroll: true });
  return (await chosen) === "returning_go_on" ? "same" : "new";
};
