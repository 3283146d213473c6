/** The debriefing text, with a field for a comment. */

import { el, paragraphs } from "../dom.ts";
import type { Screen } from "../screen.ts";
import { createChoice, showPanel } from "./panel.ts";

const MAX_COMMENT_CHARACTERS = 2000;

/** Resolve with the comment, or "" if there is none. */
export const debriefingScreen: Screen<string> = async (container, context) => {
  const comment = el("textarea", { id: "comment", rows: 4, maxlength: MAX_COMMENT_CHARACTERS, "data-testid": "comment" });
  const label = el("label", { for: "comment" }, context.text("debriefing_comment"));
  const { buttons, chosen } = createChoice(context, ["continue"]);
  const text = paragraphs(context.text("debriefing"));
  showPanel(container, context.text("debriefing_title"), ...text, label, comment, buttons);
  await chosen;
  return comment.value.trim().slice(0, MAX_COMMENT_CHARACTERS);
};
