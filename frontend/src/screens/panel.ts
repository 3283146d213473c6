/** What most screens are made of: a sheet with a title, paragraphs, and buttons to choose from. */

import { el } from "../dom.ts";
import type { Context } from "../screen.ts";

/** Clears the place and lays a sheet on it; its title takes the focus, so that it is read out. */
export function panel(place: HTMLElement, title: string, ...content: (Node | string)[]): HTMLElement {
  const heading = el("h1", { tabindex: -1 }, title);
  const sheet = el("section", { class: "panel", "aria-label": title }, heading, ...content);
  place.replaceChildren(sheet);
  toTop(place);
  heading.focus({ preventScroll: true });
  return sheet;
}

/** Scrolls whatever this place scrolls in back to its beginning. */
export function toTop(place: HTMLElement): void {
  place.closest("#experiment")?.scrollTo(0, 0);
}

/** A button of the study's words; `data-testid` is the text's key. */
export function button(context: Context, key: string, kind: "main" | "plain", act: () => void): HTMLButtonElement {
  const pressed = { class: `button ${kind}`, type: "button", "data-testid": key, onclick: act };
  return el("button", pressed, context.text(key));
}

/** A row of buttons, the first the main one, and the key of the one that was pressed. */
export function choice<Key extends string>(
  context: Context,
  keys: readonly Key[],
): { buttons: HTMLElement; first: HTMLButtonElement; chosen: Promise<Key> } {
  const { promise, resolve } = settled<Key>();
  const made = keys.map((key, index) => button(context, key, index ? "plain" : "main", () => resolve(key)));
  return { buttons: el("div", { class: "buttons" }, ...made), first: made[0]!, chosen: promise };
}

/** A line that is read out whenever it changes. */
export function announcer(kind = "note"): HTMLElement {
  return el("p", { class: kind, role: "status", "aria-live": "polite" });
}

/** Whether a key is meant for the question of leaving, which lies over every screen. */
export function forDialog(event: Event): boolean {
  return event.target instanceof Element && event.target.closest("dialog") !== null;
}

/** A promise and the way to settle it. */
export function settled<Value>(): { promise: Promise<Value>; resolve: (value: Value) => void } {
  let resolve: (value: Value) => void = () => {};
  const promise = new Promise<Value>((settle) => (resolve = settle));
  return { promise, resolve };
}
