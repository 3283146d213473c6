/** A message, with or without actions. */

import { el, paragraphs } from "../dom.ts";
import type { Message, Screen } from "../screen.ts";
import { showPanel, createDeferred } from "./panel.ts";

/** Create a screen that resolves with the name of the chosen action, and stays if there are none. */
export function noticeScreen(message: Message): Screen<string> {
  return (container, context) => {
    const { promise, resolve } = createDeferred<string>();
    const actions = (message.actions ?? []).map((action, index) => {
      const look = { class: `button ${index ? "plain" : "main"}`, "data-testid": action.name };
      const href = action.file ? URL.createObjectURL(action.file) : action.href;
      return href
        ? el("a", { ...look, href, download: action.file?.name }, action.label)
        : el("button", { ...look, type: "button", onclick: () => resolve(action.name) }, action.label);
    });
    const body = el("div", { role: "status" }, ...paragraphs(message.text));
    const buttons = actions.length > 0 ? [el("div", { class: "buttons" }, ...actions)] : [];
    showPanel(container, message.title ?? (context.study.title || context.text("title")), body, ...buttons);
    actions[0]?.focus({ preventScroll: true });
    return promise;
  };
}
