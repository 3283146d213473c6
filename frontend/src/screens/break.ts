/** A break, with the progress so far. */

import { el, paragraphs } from "../dom.ts";
import type { BreakInfo, Screen } from "../screen.ts";
import { createStatusLine, createChoice, showPanel } from "./panel.ts";

const MIN_BREAK_S = 1; // so that a key pressed for the last trial does not end the break

/**
 * Create the break screen; it resolves when the participant continues, which is possible after the minimum duration.
 */
export function breakScreen(info: BreakInfo): Screen<void> {
  return async (container, context) => {
    const percent = Math.round(info.percent);
    const bar = el("progress", { max: 100, value: percent, "aria-label": `${percent} %` });
    const countdown = createStatusLine("note");
    const { buttons, first, chosen } = createChoice(context, ["continue"]);
    const text = paragraphs(context.text("break", { percent }));
    showPanel(container, context.text("break_title"), bar, ...text, countdown, buttons);
    first.disabled = true;
    const end_ms = performance.now() + 1000 * Math.max(MIN_BREAK_S, info.at_least_s);
    const tick = () => {
      const seconds = Math.ceil((end_ms - performance.now()) / 1000);
      if (context.signal.aborted) return;
      countdown.textContent = seconds > 0 && info.at_least_s > 0 ? context.text("break_wait", { seconds }) : "";
      if (seconds > 0) return void setTimeout(tick, 200);
      first.disabled = false;
      first.focus({ preventScroll: true });
    };
    tick();
    await chosen;
  };
}
