/** Close hints (details elements) on Escape or a click outside them. */

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
