/** The instructions: three pages with figures. */

import { el, paragraphs } from "../dom.ts";
import type { Context, Screen } from "../screen.ts";
import { keyLabel } from "./keys.ts";
import { createButton, showPanel, createDeferred } from "./panel.ts";
import { circles, examples, figure, grey, landscape, partition, question } from "./pictures.ts";

/** Resolve after the last page. */
export const instructionsScreen: Screen<void> = async (container, context) => {
  const pages = createPages(context);
  for (let page = 0; page < pages.length; ) {
    const { promise, resolve } = createDeferred<number>();
    const next = createButton(context, "continue", "main", () => resolve(1));
    const back = createButton(context, "back", "plain", () => resolve(-1));
    const pageNumber = el("span", { class: "page" }, `${page + 1} / ${pages.length}`);
    const buttons = el("div", { class: "buttons" }, next, page > 0 && back, pageNumber);
    showPanel(container, context.text("instructions_title"), ...pages[page]!, buttons);
    next.focus({ preventScroll: true });
    page += await promise;
  }
};

function createPages(context: Context): HTMLElement[][] {
  const { segments } = context.study;
  const keys = {
    same: keyLabel(context.keys.same, context.text),
    different: keyLabel(context.keys.different, context.text),
  };
  const explanation =
    segments === "free" ? context.text("instructions_free") : context.text("instructions_segments", { segments });
  const figureSegments = segments === 2 ? 2 : 3;
  const segmentationFigures = [
    figure(landscape(), context.text("instructions_picture")),
    figure(partition(figureSegments), context.text("instructions_partition", { segments: figureSegments })),
  ];
  return [
    [row(...segmentationFigures), ...paragraphs(explanation)],
    [...paragraphs(context.text("instructions_trial")), row(...createTrialFigures(context, keys))],
    [
      row(...examples(context, keys)),
      ...paragraphs(context.text("instructions_keys")),
      ...paragraphs(context.text("instructions_dots")),
    ],
  ];
}

/** Return numbered figures of the phases of a trial. */
function createTrialFigures(context: Context, keys: { same: string; different: string }): HTMLElement[] {
  const points = [[30, 50], [109, 62]] as const;
  const answers = question(
    [keys.same, context.text("instructions_same_short")],
    [keys.different, context.text("instructions_different_short")],
  );
  const screens = [grey(...circles(...points)), landscape(...circles(...points)), answers];
  return screens.map((screen, index) => figure(screen, String(index + 1)));
}

function row(...figures: HTMLElement[]): HTMLElement {
  return el("div", { class: "figures" }, ...figures);
}
