/** Leaving at any time: a button that is always there, and Escape. */

import { el } from "./dom.ts";
import type { Context, Leaving } from "./screen.ts";
import { leaving } from "./screens/leave.ts";

export class LeaveButton {
  /** Aborts when the participant leaves. */
  readonly left = new AbortController();
  /** Called when the question is put, before it is answered. */
  onask: () => void = () => {};
  private readonly button: HTMLButtonElement;
  private readonly context: () => Context;
  private readonly leave: (data: "keep" | "withdraw") => void;
  private asking: Promise<void> = Promise.resolve();
  /** Whether the question is on the screen. */
  open = false;

  /** `leave` is told what shall happen to the answers. */
  constructor(label: string, context: () => Context, leave: (data: "keep" | "withdraw") => void) {
    this.context = context;
    this.leave = leave;
    const ask = () => this.ask();
    this.button = el("button", { class: "leave", type: "button", "data-testid": "leave", onclick: ask }, label);
  }

  /** From here on one may leave. */
  offer(): void {
    document.body.append(this.button);
    const pressed = (event: KeyboardEvent) => {
      if (event.key !== "Escape" || event.repeat || event.defaultPrevented) return;
      event.preventDefault(); // or the same press would close the question it opens
      this.ask();
    };
    document.addEventListener("keydown", pressed, { signal: this.left.signal });
  }

  /** Resolves when nobody is being asked. */
  answered(): Promise<void> {
    return this.asking;
  }

  /** Put the question, once at a time. */
  ask(): void {
    if (this.open || this.left.signal.aborted) return;
    this.open = true;
    this.onask();
    this.asking = this.asked();
  }

  /** No one can leave any more: all is done. */
  close(): void {
    this.button.remove();
    this.left.abort();
  }

  private async asked(): Promise<void> {
    const dialog = el("dialog", { class: "leaving" });
    // The screen below must not hear the keys that are meant for this one.
    dialog.addEventListener("keydown", (event) => event.stopPropagation());
    document.body.append(dialog);
    dialog.showModal();
    const stays = new Promise<Leaving>((resolve) => {
      dialog.addEventListener("cancel", (event) => (event.preventDefault(), resolve("stay")));
    });
    const choice = await Promise.race([leaving(dialog, this.context()), stays]);
    dialog.close();
    dialog.remove();
    this.open = false;
    if (choice === "stay") return;
    this.close();
    this.leave(choice);
  }
}
