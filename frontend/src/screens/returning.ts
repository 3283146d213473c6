/** A session lies on this computer, and nobody knows whose it is: a shared computer has many people. */

import { paragraphs } from "../dom.ts";
import type { Screen } from "../screen.ts";
import { choice, panel } from "./panel.ts";

/** Whether the person goes on with that session, or is someone new. */
export const returning: Screen<"same" | "new"> = async (place, context) => {
  const { buttons, first, chosen } = choice(context, ["returning_go_on", "returning_new"]);
  panel(place, context.text("returning_title"), ...paragraphs(context.text("returning")), buttons);
  buttons.classList.add("stacked");
  first.focus({ preventScroll: true });
  return (await chosen) === "returning_go_on" ? "same" : "new";
};
