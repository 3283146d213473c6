/** Create elements without HTML strings, so that texts are never parsed as markup. */

type Child = Node | string | null | undefined | false;
type Handlers = { [Name in keyof HTMLElementEventMap as `on${Name}`]?: (event: HTMLElementEventMap[Name]) => void };
type Attributes = Handlers & { [name: string]: unknown };

/**
 * Create an element: `el("button", { class: "main", onclick: go }, "Continue")`. `on…` adds a listener and `true` sets
 * an empty attribute; `false`, `null` and `undefined` are omitted.
 */
export function el<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value as EventListener);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Split a text into paragraphs at blank lines. */
export function paragraphs(text: string): HTMLParagraphElement[] {
  return text
    .split(/\n\s*\n/)
    .filter((part) => part.trim())
    .map((part) => el("p", {}, part.trim()));
}

/** Resolve with the next event of this name; reject when `signal` aborts. */
export function waitForEvent<Name extends keyof HTMLElementEventMap>(
  target: EventTarget,
  name: Name,
  signal: AbortSignal,
): Promise<HTMLElementEventMap[Name]> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    target.addEventListener(name, (event) => resolve(event as HTMLElementEventMap[Name]), { once: true, signal });
  });
}

/** Write the current step, and item, to the page's body. Style sheets and browser tests read them. */
export function setStep(step: string, item?: number): void {
  document.body.dataset["step"] = step;
  if (item === undefined) delete document.body.dataset["item"];
  else document.body.dataset["item"] = String(item);
}
