/** What the study was about, and room for a comment. */

import { el, paragraphs } from "../dom.ts";
import type { Screen } from "../screen.ts";
import { choice, panel } from "./panel.ts";

const LONGEST_COMMENT = 2000;

/** The comment, or "" if there is none. */
export const debriefing: Screen<string> = async (place, context) => {
  const comment = el("textarea", { id: "comment", rows: 4, maxlength: LONGEST_COMMENT, "data-testid": "comment" });
  const label = el("label", { for: "comment" }, context.text("debriefing_comment"));
  const { buttons, chosen } = choice(context, ["continue"]);
  const text = paragraphs(context.text("debriefing"));
  panel(place, context.text("debriefing_title"), ...text, label, comment, buttons);
  await chosen;
  return comment.value.trim().slice(0, LONGEST_COMMENT);
};
