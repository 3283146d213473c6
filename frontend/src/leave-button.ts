/** Leaving at any time: a button that is always there, and Escape. */

import { el } from "./dom.ts";
import type { Context, Leaving } from "./screen.ts";
import { leaveScreen } from "./screens/leave.ts";

export class LeaveButton {
  /** Aborts when the participant leaves. */
  readonly controller = new AbortController();
  /** Called when the question is put, before it is answered. */
  onOpen: () => void = () => {};
  private readonly button: HTMLButtonElement;
  private readonly context: () => Context;
  private readonly leave: (data: "keep" | "withdraw") => void;
  private answered: Promise<void> = Promise.resolve();
  /** Whether the question is on the screen. */
  isOpen = false;

  /** `leave` is told what shall happen to the answers. */
  constructor(label: string, context: () => Context, leave: (data: "keep" | "withdraw") => void) {
    this.context = context;
    this.leave = leave;
    const open = () => this.openDialog();
    this.button = el("button", { class: "leave", type: "button", "data-testid": "leave", onclick: open }, label);
  }

  /** From here on one may leave. */
  attach(): void {
    document.body.append(this.button);
    const handleKey = (event: KeyboardEvent) => {
      if (event.key !== "Escape" || event.repeat || event.defaultPrevented) return;
      event.preventDefault(); // or the same press would close the question it opens
      this.openDialog();
    };
    document.addEventListener("keydown", handleKey, { signal: this.controller.signal });
  }

  /** Resolves when nobody is being asked. */
  waitUntilAnswered(): Promise<void> {
    return this.answered;
  }

  /** Put the question, once at a time. */
  openDialog(): void {
    if (this.isOpen || this.controller.signal.aborted) return;
    this.isOpen = true;
    this.onOpen();
    this.answered = this.runDialog();
  }

  /** No one can leave any more: all is done. */
  remove(): void {
    this.button.remove();
    this.controller.abort();
  }

  private async runDialog(): Promise<void> {
    const dialog = el("dialog", { class: "leaving" });
    // The screen below must not hear the keys that are meant for this one.
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
