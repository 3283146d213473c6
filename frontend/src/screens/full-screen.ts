/** Full screen, which a browser grants only after a click or a key. */

import { el, paragraphs } from "../dom.ts";
import type { Screen } from "../screen.ts";
import { announcer, button, panel, settled } from "./panel.ts";

/** Whether it worked. `left`: it was left during the study, and is asked for again. */
export function fullScreen(left: boolean): Screen<boolean> {
  return (place, context) => {
    const { promise, resolve } = settled<boolean>();
    const message = announcer("problem");
    const enter = button(context, "full_screen_enter", "main", () => {
      document.documentElement.requestFullscreen({ navigationUI: "hide" }).then(
        () => resolve(true),
        () => {
          message.textContent = context.text("full_screen_failed");
          if (!without.isConnected) enter.after(without);
        },
      );
    });
    const without = button(context, "full_screen_without", "plain", () => resolve(false));
    const text = paragraphs(context.text(left ? "full_screen_left" : "full_screen"));
    panel(place, context.text("full_screen_title"), ...text, message, el("div", { class: "buttons" }, enter));
    enter.focus({ preventScroll: true });
    return promise;
  };
}
