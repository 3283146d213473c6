/** Buttons that copy the field they name. */

export function enableCopyButtons(): void {
  document.addEventListener("click", (event) => {
    const button = (event.target as Element).closest<HTMLElement>("[data-copy]");
    if (button) void copyField(button);
  });
}

async function copyField(button: HTMLElement): Promise<void> {
  const field = document.getElementById(button.dataset["copy"]!) as HTMLInputElement | HTMLTextAreaElement;
  field.select();
  try {
    await navigator.clipboard.writeText(field.value);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Press Ctrl+C"; // without https a page may not copy by itself
  }
}
