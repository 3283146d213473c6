/** Full screen, which a browser grants only after a click or a key. */

import { el, paragraphs } from "../dom.ts";
import type { Screen } from "../screen.ts";
import { createStatusLine, createButton, showPanel, createDeferred } from "./panel.ts";

/** Whether it worked. `left`: it was left during the study, and is asked for again. */
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
