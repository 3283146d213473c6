/**
 * Update one part of the page to match another with as few changes as possible: focus is kept, open elements stay open,
 * and charts drawn by script are left alone.
 */

/**
 * Return the index of the old child that each new child continues, or -1: the one with the same key, or, without a key,
 * the next one of the same kind.
 */
export function matchChildren(old: readonly Child[], fresh: readonly Child[]): number[] {
  const byKey = new Map(old.flatMap(({ key }, index) => (key ? [[key, index] as const] : [])));
  let next = 0;
  const matched = new Set<number>();
  return fresh.map(({ key, kind }) => {
    let index = -1;
    if (key) index = byKey.get(key) ?? -1;
    else {
      for (let each = next; each < old.length && index < 0; each++) {
        if (!old[each]!.key && old[each]!.kind === kind) index = each;
      }
      if (index >= 0) next = index + 1;
    }
    if (index < 0 || matched.has(index) || old[index]!.kind !== kind) return -1;
    matched.add(index);
    return index;
  });
}

export interface Child {
  key: string;
  kind: string;
}

/** Update `old` to match `fresh`. */
export function morph(old: Element, fresh: Element): void {
  updateAttributes(old, fresh);
  if (old.hasAttribute("data-chart")) return; // a chart is drawn by script from this attribute
  updateChildren(old, fresh);
}

function updateChildren(old: Element, fresh: Element): void {
  const before = [...old.childNodes];
  const after = [...fresh.childNodes];
  const from = matchChildren(before.map(describeChild), after.map(describeChild));
  const continuedIndices = new Set(from.filter((index) => index >= 0));
  before.forEach((node, index) => continuedIndices.has(index) || node.remove());
  let cursor: ChildNode | null = old.firstChild;
  after.forEach((node, index) => {
    const same = before[from[index]!];
    if (!same) old.insertBefore(node, cursor);
    else {
      if (same === cursor) cursor = cursor.nextSibling;
      else old.insertBefore(same, cursor);
      updateNode(same, node);
    }
  });
}

function updateNode(old: ChildNode, fresh: ChildNode): void {
  if (old instanceof Element && fresh instanceof Element) {
    // A nested live part is refreshed separately; only its address may have changed.
    if (old.hasAttribute("data-live") && old.id === fresh.id) {
      old.setAttribute("data-live", fresh.getAttribute("data-live")!);
    } else morph(old, fresh);
  } else if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
}

function describeChild(node: ChildNode): Child {
  const key = node instanceof Element ? node.id || node.getAttribute("data-key") || "" : "";
  return { key, kind: node.nodeName };
}

function updateAttributes(old: Element, fresh: Element): void {
  for (const { name, value } of [...fresh.attributes]) {
    if (old.getAttribute(name) === value) continue;
    if (name === "src" && old instanceof HTMLImageElement) void swapImage(old, value);
    else old.setAttribute(name, value);
  }
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && name !== "open") old.removeAttribute(name);
  }
}

const pendingSources = new WeakMap<HTMLImageElement, string>();

/** Replace the source of an image once the new one is decoded, so that nothing flickers. */
async function swapImage(image: HTMLImageElement, src: string): Promise<void> {
  if (pendingSources.get(image) === src) return;
  pendingSources.set(image, src);
  const next = new Image();
  next.src = src;
  try {
    await next.decode();
  } catch {
    pendingSources.delete(image); // keep the old image; the next refresh tries again
    return;
  }
  if (pendingSources.get(image) === src) image.src = src;
}
