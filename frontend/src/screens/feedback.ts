/** Feedback in practice trials, whose right answer is known. */

import { el } from "../dom.ts";
import type { Context, Screen } from "../screen.ts";
import { createButton, createDeferred } from "./panel.ts";
import { keyName } from "./keys.ts";

const RIGHT_MS = 700; // long enough to see, too short to disturb
const WRONG_MS = 600; // keys pressed earlier were meant for the trial

/**
 * Create the feedback screen. "Right" disappears by itself; "wrong" explains and waits for the button or an answer key.
 */
export function feedbackScreen(right: boolean, same?: boolean): Screen<void> {
  return (container, context) => {
    const { promise, resolve } = createDeferred<void>();
    const verdict = el("p", { class: `verdict ${right ? "right" : "wrong"}` }, context.text(textKey(right, same)));
    const sheet = el("section", { class: "bare", role: "status", "aria-live": "assertive" }, verdict);
    container.replaceChildren(sheet);
    if (right) setTimeout(resolve, RIGHT_MS);
    else setTimeout(() => waitForContinue(sheet, context, resolve), WRONG_MS);
    return promise;
  };
}

function textKey(right: boolean, same?: boolean): string {
  if (right) return "practice_right";
  if (same === undefined) return "practice_wrong";
  return same ? "practice_wrong_same" : "practice_wrong_different";
}

function waitForContinue(sheet: HTMLElement, context: Context, resolve: () => void): void {
  const listening = new AbortController();
  const signal = AbortSignal.any([context.signal, listening.signal]);
  const finish = () => {
    listening.abort();
    resolve();
  };
  const answers = [context.keys.same, context.keys.different];
  const handleKey = (event: KeyboardEvent) => {
    if (event.repeat || !answers.includes(keyName(event) ?? "")) return;
    event.preventDefault();
    finish();
  };
  document.addEventListener("keydown", handleKey, { signal });
  const continueButton = createButton(context, "continue", "main", finish);
  sheet.append(continueButton);
  continueButton.focus();
}
