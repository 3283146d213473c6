/** A message that stays, or that waits for one of its actions. */

import { el, paragraphs } from "../dom.ts";
import type { Said, Screen } from "../screen.ts";
import { panel, settled } from "./panel.ts";

/** Resolves with the name of the action chosen; without actions it stays. A link leads away, a file is saved. */
export function notice(said: Said): Screen<string> {
  return (place, context) => {
    const { promise, resolve } = settled<string>();
    const actions = (said.actions ?? []).map((action, index) => {
      const look = { class: `button ${index ? "plain" : "main"}`, "data-testid": action.name };
      const href = action.file ? URL.createObjectURL(action.file) : action.href;
      return href
        ? el("a", { ...look, href, download: action.file?.name }, action.label)
        : el("button", { ...look, type: "button", onclick: () => resolve(action.name) }, action.label);
    });
    const message = el("div", { role: "status" }, ...paragraphs(said.text));
    const buttons = actions.length > 0 ? [el("div", { class: "buttons" }, ...actions)] : [];
    panel(place, said.title ?? (context.study.title || context.text("title")), message, ...buttons);
    actions[0]?.focus({ preventScroll: true });
    return promise;
  };
}
