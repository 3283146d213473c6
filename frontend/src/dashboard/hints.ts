/** Hints are details elements; with script they also close by themselves: Escape, or a click beside them. */

export function enableHintClosing(): void {
  document.addEventListener("click", ({ target }) => {
    for (const hint of findOpenHints()) if (!hint.contains(target as Node)) hint.open = false;
  });
  document.addEventListener("keydown", ({ key }) => {
    if (key !== "Escape") return;
    for (const hint of findOpenHints()) {
      if (hint.contains(document.activeElement)) hint.querySelector("summary")!.focus();
      hint.open = false;
    }
  });
}

const findOpenHints = () => document.querySelectorAll<HTMLDetailsElement>("details.hint[open]");
