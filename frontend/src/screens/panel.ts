/** Building blocks of screens: a panel with a title, buttons and status lines. */

import { el } from "../dom.ts";
import type { Context } from "../screen.ts";

/** Replace the content of the container by a panel. Its title gets the focus, so that screen readers read it. */
export function showPanel(container: HTMLElement, title: string, ...content: (Node | string)[]): HTMLElement {
  const heading = el("h1", { tabindex: -1 }, title);
  const sheet = el("section", { class: "panel", "aria-label": title }, heading, ...content);
  container.replaceChildren(sheet);
  scrollToTop(container);
  heading.focus({ preventScroll: true });
  return sheet;
}

/** Scroll the page's scrolling element to the top. */
export function scrollToTop(container: HTMLElement): void {
  container.closest("#experiment")?.scrollTo(0, 0);
}

/** Create a button with the study's text; `data-testid` is the key of the text. */
export function createButton(
  context: Context,
  key: string,
  kind: "main" | "plain",
  onClick: () => void,
): HTMLButtonElement {
  const attributes = { class: `button ${kind}`, type: "button", "data-testid": key, onclick: onClick };
  return el("button", attributes, context.text(key));
}

/** Create a row of buttons, the first one highlighted; `chosen` resolves with the key of the one pressed. */
export function createChoice<Key extends string>(
  context: Context,
  keys: readonly Key[],
): { buttons: HTMLElement; first: HTMLButtonElement; chosen: Promise<Key> } {
  const { promise, resolve } = createDeferred<Key>();
  const buttons = keys.map((key, index) => createButton(context, key, index ? "plain" : "main", () => resolve(key)));
  return { buttons: el("div", { class: "buttons" }, ...buttons), first: buttons[0]!, chosen: promise };
}

/** Create a line of text that screen readers read whenever it changes. */
export function createStatusLine(kind = "note"): HTMLElement {
  return el("p", { class: kind, role: "status", "aria-live": "polite" });
}

/** Return whether an event is meant for the leave dialog, which lies above every screen. */
export function isForDialog(event: Event): boolean {
  return event.target instanceof Element && event.target.closest("dialog") !== null;
}

/** Create a promise together with its resolve function. */
export function createDeferred<Value>(): { promise: Promise<Value>; resolve: (value: Value) => void } {
  let resolve: (value: Value) => void = () => {};
  const promise = new Promise<Value>((settle) => (resolve = settle));
  return { promise, resolve };
}
