/** Buttons that copy the field whose ID is in data-copy. */

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
    button.textContent = "Press Ctrl+C"; // pages without https may not write to the clipboard
  }
}
