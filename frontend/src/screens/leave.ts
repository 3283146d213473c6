/** The dialog before leaving: keep the answers, withdraw them, or stay. */

import { paragraphs } from "../dom.ts";
import type { Leaving, Screen } from "../screen.ts";
import { createChoice, showPanel } from "./panel.ts";

const CHOICES = { leave_stay: "stay", leave_keep: "keep", leave_withdraw: "withdraw" } as const;

/** Resolve with the participant's choice; Escape means stay. */
export const leaveScreen: Screen<Leaving> = async (container, context) => {
  const { buttons, first, chosen } = createChoice(context, ["leave_stay", "leave_keep", "leave_withdraw"]);
  const sheet = showPanel(container, context.text("leave_title"), ...paragraphs(context.text("leave_question")), buttons);
  buttons.classList.add("stacked");
  buttons.lastElementChild?.classList.add("grave");
  sheet.addEventListener("keydown", (event) => event.key === "Escape" && first.click());
  return CHOICES[await chosen];
};
