/** What to do, in three pages with pictures. */

import { el, paragraphs } from "../dom.ts";
import type { Context, Screen } from "../screen.ts";
import { keyLabel } from "./keys.ts";
import { button, panel, settled } from "./panel.ts";
import { circles, examples, figure, grey, landscape, partition, question } from "./pictures.ts";

/** Resolves after the last page. */
export const instructions: Screen<void> = async (place, context) => {
  const pages = written(context);
  for (let page = 0; page < pages.length; ) {
    const { promise, resolve } = settled<number>();
    const on = button(context, "continue", "main", () => resolve(1));
    const back = button(context, "back", "plain", () => resolve(-1));
    const where = el("span", { class: "page" }, `${page + 1} / ${pages.length}`);
    const buttons = el("div", { class: "buttons" }, on, page > 0 && back, where);
    panel(place, context.text("instructions_title"), ...pages[page]!, buttons);
    on.focus({ preventScroll: true });
    page += await promise;
  }
};

function written(context: Context): HTMLElement[][] {
  const { segments } = context.study;
  const keys = {
    same: keyLabel(context.keys.same, context.text),
    different: keyLabel(context.keys.different, context.text),
  };
  const parts =
    segments === "free" ? context.text("instructions_free") : context.text("instructions_segments", { segments });
  const drawn = segments === 2 ? 2 : 3;
  const splitIntoBlocks = [
    figure(landscape(), context.text("instructions_picture")),
    figure(partition(drawn), context.text("instructions_partition", { segments: drawn })),
  ];
  return [
    [row(...splitIntoBlocks), ...paragraphs(parts)],
    [...paragraphs(context.text("instructions_trial")), row(...sequence(context, keys))],
    [
      row(...examples(context, keys)),
      ...paragraphs(context.text("instructions_keys")),
      ...paragraphs(context.text("instructions_dots")),
    ],
  ];
}

/** The screens of a trial, numbered. */
function sequence(context: Context, keys: { same: string; different: string }): HTMLElement[] {
  const places = [[30, 50], [109, 62]] as const;
  const answers = question(
    [keys.same, context.text("instructions_same_short")],
    [keys.different, context.text("instructions_different_short")],
  );
  const screens = [grey(...circles(...places)), landscape(...circles(...places)), answers];
  return screens.map((screen, index) => figure(screen, String(index + 1)));
}

function row(...figures: HTMLElement[]): HTMLElement {
  return el("div", { class: "figures" }, ...figures);
}
