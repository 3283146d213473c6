/** Request full screen, which browsers grant only after a click or key press. */

import { el, paragraphs } from "../dom.ts";
import type { Screen } from "../screen.ts";
import { createStatusLine, createButton, showPanel, createDeferred } from "./panel.ts";

/** Create the screen; it resolves with whether full screen was granted. `wasLeft`: it was left during the study. */
export function fullScreenScreen(wasLeft: boolean): Screen<boolean> {
  return (container, context) => {
    const { promise, resolve } = createDeferred<boolean>();
    const message = createStatusLine("problem");
    const enter = createButton(context, "full_screen_enter", "main", () => {
      document.documentElement.requestFullscreen({ navigationUI: "hide" }).then(
        () => resolve(true),
        () => {
          message.textContent = context.text("full_screen_failed");
          if (!continueWithout.isConnected) enter.after(continueWithout);
        },
      );
    });
    const continueWithout = createButton(context, "full_screen_without", "plain", () => resolve(false));
    const text = paragraphs(context.text(wasLeft ? "full_screen_left" : "full_screen"));
    showPanel(container, context.text("full_screen_title"), ...text, message, el("div", { class: "buttons" }, enter));
    enter.focus({ preventScroll: true });
    return promise;
  };
}
