/** The keys of the two answers: participants try them, and may change them if the study allows it. */

import { el, paragraphs } from "../dom.ts";
import type { Context, Keys, Screen } from "../screen.ts";
import { createStatusLine, createButton, isForDialog, showPanel, createDeferred } from "./panel.ts";

type Answer = keyof Keys;

const ARROWS: Record<string, string> = { arrowleft: "←", arrowright: "→", arrowup: "↑", arrowdown: "↓" };

/** The fields of a `KeyboardEvent` that are needed here. */
interface PressedKey {
  key: string;
  ctrlKey?: boolean;
  metaKey?: boolean;
  altKey?: boolean;
}

/** Return the name of a key as in the study file, or null if it cannot be an answer. */
export function keyName(event: PressedKey): string | null {
  if (isShortcut(event)) return null;
  const name = event.key === " " ? "space" : event.key.toLowerCase();
  return /^([a-z0-9]|arrow(left|right|up|down)|space|enter)$/.test(name) ? name : null;
}

/** Return whether the key is part of a browser shortcut such as Ctrl+R. */
function isShortcut({ ctrlKey, metaKey, altKey }: PressedKey): boolean {
  return Boolean(ctrlKey || metaKey || altKey);
}

/** Return the label of a key for the participant. */
export function keyLabel(key: string, text: Context["text"]): string {
  if (key === "space") return text("key_space");
  if (key === "enter") return text("key_enter");
  return ARROWS[key] ?? key.toUpperCase();
}

/** Assign a new key to an answer: return the new keys, or the key of the text that says why it is refused. */
export function remap(keys: Keys, answer: Answer, key: string | null): Keys | "keys_taken" | "keys_not_allowed" {
  if (key === null) return "keys_not_allowed";
  const other = answer === "same" ? keys.different : keys.same;
  return key === other ? "keys_taken" : { ...keys, [answer]: key };
}

/** Resolve with the keys that the participant will use. */
export const keysScreen: Screen<Keys> = (container, context) => {
  const { promise, resolve } = createDeferred<Keys>();
  const caps = { same: el("kbd"), different: el("kbd") };
  const message = createStatusLine("note");
  let chosen: Keys = { ...context.keys };
  let previous = chosen;
  let changing: Answer | null = null;

  const show = () => {
    for (const answer of ["same", "different"] as const) {
      caps[answer].textContent = keyLabel(chosen[answer], context.text) || "?";
      caps[answer].classList.toggle("asked", answer === changing);
    }
    message.textContent = changing ? `${context.text(`keys_${changing}`)} ${context.text("keys_press")}` : "";
    change.disabled = changing !== null;
    done.disabled = changing !== null;
  };
  const promptFor = (answer: Answer | null) => {
    changing = answer;
    for (const cap of Object.values(caps)) cap.classList.remove("tried");
    show();
    if (answer === null) done.focus();
  };
  const assignKey = (event: KeyboardEvent, answer: Answer) => {
    if (isShortcut(event) || ["Tab", "Shift", "Control", "Alt", "Meta"].includes(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
    if (event.repeat) return;
    if (event.key === "Escape") {
      chosen = previous;
      return promptFor(null);
    }
    const result = remap(chosen, answer, keyName(event));
    if (typeof result === "string") message.textContent = context.text(result);
    else {
      chosen = result;
      promptFor(answer === "same" ? "different" : null);
    }
  };
  const tryKey = (event: KeyboardEvent) => {
    const key = keyName(event);
    const answer = key === chosen.same ? "same" : key === chosen.different ? "different" : null;
    // Trying a key takes precedence over pressing a button, because the answers may be on the space bar and Enter.
    if (answer === null || caps[answer].classList.contains("tried")) return;
    event.preventDefault();
    caps[answer].classList.add("tried");
  };

  const change = createButton(context, "keys_change", "plain", () => {
    previous = chosen;
    chosen = { same: "", different: "" };
    promptFor("same");
  });
  const done = createButton(context, "continue", "main", () => {
    listening.abort();
    resolve(chosen);
  });
  const listening = new AbortController();
  const handleKey = (event: KeyboardEvent) => {
    if (isForDialog(event)) return;
    if (changing) assignKey(event, changing);
    else tryKey(event);
  };
  const signal = AbortSignal.any([context.signal, listening.signal]);
  document.addEventListener("keydown", handleKey, { capture: true, signal });

  const rows = (["same", "different"] as const).map((answer) =>
    el("div", { class: "key" }, el("span", {}, context.text(`keys_${answer}`)), caps[answer]),
  );
  const actions = el("div", { class: "buttons" }, done, context.study.keys.remappable && change);
  const text = paragraphs(context.text("keys"));
  showPanel(container, context.text("keys_title"), ...text, el("div", { class: "keys" }, ...rows), message, actions);
  show();
  return promise;
};
