/** The button, and the Escape key, with which a participant can leave at any time. */

import { el } from "./dom.ts";
import type { Context, Leaving } from "./screen.ts";
import { leaveScreen } from "./screens/leave.ts";

export class LeaveButton {
  /** Aborts when the participant leaves or the session ends. */
  readonly controller = new AbortController();
  /** Called when the dialog opens. */
  onOpen: () => void = () => {};
  private readonly button: HTMLButtonElement;
  private readonly context: () => Context;
  private readonly leave: (data: "keep" | "withdraw") => void;
  private answered: Promise<void> = Promise.resolve();
  /** Whether the dialog is open. */
  isOpen = false;

  /** `leave` is called with what should happen to the answers. */
  constructor(label: string, context: () => Context, leave: (data: "keep" | "withdraw") => void) {
    this.context = context;
    this.leave = leave;
    const open = () => this.openDialog();
    this.button = el("button", { class: "leave", type: "button", "data-testid": "leave", onclick: open }, label);
  }

  /** Add the button to the page and listen for Escape. */
  attach(): void {
    document.body.append(this.button);
    const handleKey = (event: KeyboardEvent) => {
      if (event.key !== "Escape" || event.repeat || event.defaultPrevented) return;
      event.preventDefault(); // the same key press would close the dialog
      this.openDialog();
    };
    document.addEventListener("keydown", handleKey, { signal: this.controller.signal });
  }

  /** Resolve when no dialog is open. */
  waitUntilAnswered(): Promise<void> {
    return this.answered;
  }

  /** Open the dialog, unless it is already open. */
  openDialog(): void {
    if (this.isOpen || this.controller.signal.aborted) return;
    this.isOpen = true;
    this.onOpen();
    this.answered = this.runDialog();
  }

  /** Remove the button; leaving is no longer possible. */
  remove(): void {
    this.button.remove();
    this.controller.abort();
  }

  private async runDialog(): Promise<void> {
    const dialog = el("dialog", { class: "leaving" });
    // Keys pressed in the dialog must not reach the screen below.
    dialog.addEventListener("keydown", (event) => event.stopPropagation());
    document.body.append(dialog);
    dialog.showModal();
    const cancelled = new Promise<Leaving>((resolve) => {
      dialog.addEventListener("cancel", (event) => (event.preventDefault(), resolve("stay")));
    });
    const choice = await Promise.race([leaveScreen(dialog, this.context()), cancelled]);
    dialog.close();
    dialog.remove();
    this.isOpen = false;
    if (choice === "stay") return;
    this.remove();
    this.leave(choice);
  }
}
