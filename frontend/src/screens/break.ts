/** A rest, with how far they have come. */

import { el, paragraphs } from "../dom.ts";
import type { Pause, Screen } from "../screen.ts";
import { announcer, choice, panel } from "./panel.ts";

const SHORTEST_S = 1; // so that a key meant for the last question does not end the rest

/** Resolves when the person goes on, which they may after the shortest rest. */
export function rest(pause: Pause): Screen<void> {
  return async (place, context) => {
    const percent = Math.round(pause.percent);
    const bar = el("progress", { max: 100, value: percent, "aria-label": `${percent} %` });
    const wait = announcer("note");
    const { buttons, first, chosen } = choice(context, ["continue"]);
    const text = paragraphs(context.text("break", { percent }));
    panel(place, context.text("break_title"), bar, ...text, wait, buttons);
    first.disabled = true;
    const opens = performance.now() + 1000 * Math.max(SHORTEST_S, pause.at_least_s);
    const tick = () => {
      const seconds = Math.ceil((opens - performance.now()) / 1000);
      if (context.signal.aborted) return;
      wait.textContent = seconds > 0 && pause.at_least_s > 0 ? context.text("break_wait", { seconds }) : "";
      if (seconds > 0) return void setTimeout(tick, 200);
      first.disabled = false;
      first.focus({ preventScroll: true });
    };
    tick();
    await chosen;
  };
}
