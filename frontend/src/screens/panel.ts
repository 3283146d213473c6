/** What most screens are buttons of: a sheet with a title, paragraphs, and buttons to choose from. */

import { el } from "../dom.ts";
import type { Context } from "../screen.ts";

/** Clears the place and lays a sheet on it; its title takes the focus, so that it is read out. */
export function showPanel(container: HTMLElement, title: string, ...content: (Node | string)[]): HTMLElement {
  const heading = el("h1", { tabindex: -1 }, title);
  const sheet = el("section", { class: "panel", "aria-label": title }, heading, ...content);
  container.replaceChildren(sheet);
  scrollToTop(container);
  heading.focus({ preventScroll: true });
  return sheet;
}

/** Scrolls whatever this place scrolls in back to its beginning. */
export function scrollToTop(container: HTMLElement): void {
  container.closest("#experiment")?.scrollTo(0, 0);
}

/** A button of the study's words; `data-testid` is the text's key. */
export function createButton(context: Context, key: string, kind: "main" | "plain", onClick: () => void): HTMLButtonElement {
  const attributes = { class: `button ${kind}`, type: "button", "data-testid": key, onclick: onClick };
  return el("button", attributes, context.text(key));
}

/** A row of buttons, the first the main one, and the key of the one that was pressed. */
export function createChoice<Key extends string>(
  context: Context,
  keys: readonly Key[],
): { buttons: HTMLElement; first: HTMLButtonElement; chosen: Promise<Key> } {
  const { promise, resolve } = createDeferred<Key>();
  const buttons = keys.map((key, index) => createButton(context, key, index ? "plain" : "main", () => resolve(key)));
  return { buttons: el("div", { class: "buttons" }, ...buttons), first: buttons[0]!, chosen: promise };
}

/** A line that is read out whenever it changes. */
export function createStatusLine(kind = "note"): HTMLElement {
  return el("p", { class: kind, role: "status", "aria-live": "polite" });
}

/** Whether a key is meant for the question of leaving, which lies over every screen. */
export function isForDialog(event: Event): boolean {
  return event.target instanceof Element && event.target.closest("dialog") !== null;
}

/** A promise and the way to settle it. */
export function createDeferred<Value>(): { promise: Promise<Value>; resolve: (value: Value) => void } {
  let resolve: (value: Value) => void = () => {};
  const promise = new Promise<Value>((settle) => (resolve = settle));
  return { promise, resolve };
}
