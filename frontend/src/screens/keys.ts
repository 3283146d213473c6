/** The two keys of the answers: tried once, and changed if the study allows it. */

import { el, paragraphs } from "../dom.ts";
import type { Context, Keys, Screen } from "../screen.ts";
import { announcer, button, forDialog, panel, settled } from "./panel.ts";

type Answer = keyof Keys;

const ARROWS: Record<string, string> = { arrowleft: "←", arrowright: "→", arrowup: "↑", arrowdown: "↓" };

/** A key as it was pressed: a `KeyboardEvent`, as far as it matters. */
interface Pressed {
  key: string;
  ctrlKey?: boolean;
  metaKey?: boolean;
  altKey?: boolean;
}

/** The name of a pressed key as the study file writes it; null for one that cannot be an answer. */
export function keyName(event: Pressed): string | null {
  if (isShortcut(event)) return null;
  const name = event.key === " " ? "space" : event.key.toLowerCase();
  return /^([a-z0-9]|arrow(left|right|up|down)|space|enter)$/.test(name) ? name : null;
}

/** Ctrl and R is for the browser, not for us. */
function isShortcut({ ctrlKey, metaKey, altKey }: Pressed): boolean {
  return Boolean(ctrlKey || metaKey || altKey);
}

/** What a person calls the key. */
export function keyLabel(key: string, text: Context["text"]): string {
  if (key === "space") return text("key_space");
  if (key === "enter") return text("key_enter");
  return ARROWS[key] ?? key.toUpperCase();
}

/** What a new key for one of the answers comes to: the keys with it, or the text that says why not. */
export function remap(keys: Keys, answer: Answer, key: string | null): Keys | "keys_taken" | "keys_not_allowed" {
  if (key === null) return "keys_not_allowed";
  const other = answer === "same" ? keys.different : keys.same;
  return key === other ? "keys_taken" : { ...keys, [answer]: key };
}

/** The keys the person will answer with. */
export const keys: Screen<Keys> = (place, context) => {
  const { promise, resolve } = settled<Keys>();
  const caps = { same: el("kbd"), different: el("kbd") };
  const message = announcer("note");
  let chosen: Keys = { ...context.keys };
  let before = chosen;
  let changing: Answer | null = null;

  const show = () => {
    for (const answer of ["same", "different"] as const) {
      caps[answer].textContent = keyLabel(chosen[answer], context.text) || "?";
      caps[answer].classList.toggle("asked", answer === changing);
    }
    message.textContent = changing ? `${context.text(`keys_${changing}`)} ${context.text("keys_press")}` : "";
    change.disabled = changing !== null;
    go.disabled = changing !== null;
  };
  const ask = (answer: Answer | null) => {
    changing = answer;
    for (const cap of Object.values(caps)) cap.classList.remove("tried");
    show();
    if (answer === null) go.focus();
  };
  const take = (event: KeyboardEvent, answer: Answer) => {
    if (isShortcut(event) || ["Tab", "Shift", "Control", "Alt", "Meta"].includes(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
    if (event.repeat) return;
    if (event.key === "Escape") {
      chosen = before;
      return ask(null);
    }
    const result = remap(chosen, answer, keyName(event));
    if (typeof result === "string") message.textContent = context.text(result);
    else {
      chosen = result;
      ask(answer === "same" ? "different" : null);
    }
  };
  const tryOut = (event: KeyboardEvent) => {
    const key = keyName(event);
    const answer = key === chosen.same ? "same" : key === chosen.different ? "different" : null;
    // A key is tried before it may press a button: both answers may be on the space bar and Enter.
    if (answer === null || caps[answer].classList.contains("tried")) return;
    event.preventDefault();
    caps[answer].classList.add("tried");
  };

  const change = button(context, "keys_change", "plain", () => {
    before = chosen;
    chosen = { same: "", different: "" };
    ask("same");
  });
  const go = button(context, "continue", "main", () => {
    listening.abort();
    resolve(chosen);
  });
  const listening = new AbortController();
  const pressed = (event: KeyboardEvent) => {
    if (forDialog(event)) return;
    if (changing) take(event, changing);
    else tryOut(event);
  };
  const signal = AbortSignal.any([context.signal, listening.signal]);
  document.addEventListener("keydown", pressed, { capture: true, signal });

  const rows = (["same", "different"] as const).map((answer) =>
    el("div", { class: "key" }, el("span", {}, context.text(`keys_${answer}`)), caps[answer]),
  );
  const actions = el("div", { class: "buttons" }, go, context.study.keys.remappable && change);
  const text = paragraphs(context.text("keys"));
  panel(place, context.text("keys_title"), ...text, el("div", { class: "keys" }, ...rows), message, actions);
  show();
  return promise;
};
