/**
 * Makes one piece of the page like another by changing as little as possible: what has focus keeps it, what was
 * opened stays open, and what is drawn by script is left alone.
 */

/** Which of the old children each fresh one continues (-1: none): by key, else the next one without key of its kind. */
export function continued(old: readonly Child[], fresh: readonly Child[]): number[] {
  const byKey = new Map(old.flatMap(({ key }, at) => (key ? [[key, at] as const] : [])));
  let next = 0;
  const taken = new Set<number>();
  return fresh.map(({ key, kind }) => {
    let at = -1;
    if (key) at = byKey.get(key) ?? -1;
    else {
      for (let each = next; each < old.length && at < 0; each++) {
        if (!old[each]!.key && old[each]!.kind === kind) at = each;
      }
      if (at >= 0) next = at + 1;
    }
    if (at < 0 || taken.has(at) || old[at]!.kind !== kind) return -1;
    taken.add(at);
    return at;
  });
}

export interface Child {
  key: string;
  kind: string;
}

/** `old` becomes like `fresh`. */
export function morph(old: Element, fresh: Element): void {
  attributes(old, fresh);
  if (old.hasAttribute("data-chart")) return; // drawn by script, from the attribute
  children(old, fresh);
}

function children(old: Element, fresh: Element): void {
  const before = [...old.childNodes];
  const after = [...fresh.childNodes];
  const from = continued(before.map(described), after.map(described));
  const kept = new Set(from.filter((at) => at >= 0));
  before.forEach((node, at) => kept.has(at) || node.remove());
  let cursor: ChildNode | null = old.firstChild;
  after.forEach((node, at) => {
    const same = before[from[at]!];
    if (!same) old.insertBefore(node, cursor);
    else {
      if (same === cursor) cursor = cursor.nextSibling;
      else old.insertBefore(same, cursor);
      continueWith(same, node);
    }
  });
}

function continueWith(old: ChildNode, fresh: ChildNode): void {
  if (old instanceof Element && fresh instanceof Element) {
    // A live part inside has its own way of being fetched; only its address may have changed.
    if (old.hasAttribute("data-live") && old.id === fresh.id) old.setAttribute("data-live", fresh.getAttribute("data-live")!);
    else morph(old, fresh);
  } else if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
}

function described(node: ChildNode): Child {
  const key = node instanceof Element ? node.id || node.getAttribute("data-key") || "" : "";
  return { key, kind: node.nodeName };
}

function attributes(old: Element, fresh: Element): void {
  for (const { name, value } of [...fresh.attributes]) {
    if (old.getAttribute(name) === value) continue;
    if (name === "src" && old instanceof HTMLImageElement) void swapped(old, value);
    else old.setAttribute(name, value);
  }
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && name !== "open") old.removeAttribute(name);
  }
}

const wanted = new WeakMap<HTMLImageElement, string>();

/** Another picture in the same place, once it can be drawn: nothing flickers. */
async function swapped(image: HTMLImageElement, src: string): Promise<void> {
  if (wanted.get(image) === src) return;
  wanted.set(image, src);
  const next = new Image();
  next.src = src;
  try {
    await next.decode();
  } catch {
    wanted.delete(image); // the old one stays; a later round tries again
    return;
  }
  if (wanted.get(image) === src) image.src = src;
}
