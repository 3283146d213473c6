/**
 * Measure the size of a pixel and the viewing distance with jsPsych's virtual chinrest (Li et al. 2020), using a card
 * and the blind spot.
 *
 * The plugin is adapted without changing it. The page allows no inline styles, so they are removed from its markup and
 * are in experiment.css. Texts are inserted as text. The card can also be resized with keys, buttons, pen and finger.
 * The dot moves at a speed independent of the refresh rate, far enough for all plausible distances, and starts again at
 * the edge. Repeating the measurement takes as many measurements as the first time.
 */

import VirtualChinrest from "@jspsych/plugin-virtual-chinrest";
import type { TrialType } from "jspsych";

import { el, setStep, paragraphs } from "../dom.ts";
import type { Context, DistanceResult } from "../screen.ts";
import { distanceFromOffset, dotPosition, isPossible, isScattered } from "./blind-spot.ts";
import { createCard } from "./card.ts";
import { mean } from "./numbers.ts";
import { createStatusLine, createButton, isForDialog, scrollToTop } from "./panel.ts";

const CARD_MM = { width: 85.6, height: 53.98 };
const START_PX = 320;
const MEASUREMENTS = 5;
const TOO_SOON_MS = 300; // after the start of a sweep: too early to be a judgement
const HINT_MS = 20_000;
const SWEEP_MM = 290; // a dot this far out is in the blind spot at 1.2 m

type Phase = "card" | "blind-spot" | "report";

/** The measurements so far. */
interface Measurements {
  px_per_mm: number;
  measured_mm: number[];
}

/** Create the timeline node; it calls `onResult` once, at its end. */
export function createDistanceNode(
  context: Context,
  onResult: (result: DistanceResult) => void,
): Record<string, unknown> {
  const measurements: Measurements = { px_per_mm: START_PX / CARD_MM.width, measured_mm: [] };
  return {
    type: createChinrest(context, measurements),
    item_width_mm: CARD_MM.width,
    item_height_mm: CARD_MM.height,
    item_init_size: START_PX,
    blindspot_reps: MEASUREMENTS,
    // The texts are inserted as nodes after the plugin has rendered.
    adjustment_prompt: `<div id="distance-words"></div>`,
    adjustment_button_prompt: "",
    blindspot_prompt: `<div id="distance-words"></div>`,
    blindspot_measurements_prompt: "",
    viewing_distance_report: `<div id="distance-words"></div><span id="distance-estimate"></span>`,
    redo_measurement_button_label: "",
    blindspot_done_prompt: "",
    on_start: () => {
      measurements.measured_mm = []; // the node runs again after a change of zoom
    },
    on_finish: ({ view_dist_mm }: { view_dist_mm: number | null }) => {
      const distance_mm = view_dist_mm !== null && isPossible(view_dist_mm) ? view_dist_mm : null;
      onResult({ ...measurements, distance_mm, device_pixel_ratio: devicePixelRatio });
    },
  };
}

/** Create the adapted plugin for one participant. */
function createChinrest(context: Context, measurements: Measurements) {
  return class Chinrest extends VirtualChinrest {
    private readonly finished = new AbortController();

    override trial(container: HTMLElement, trial: TrialType<typeof VirtualChinrest.info>): void {
      const signal = AbortSignal.any([context.signal, this.finished.signal]);
      stripInlineStyles(container, () => this.handleRendered(container, signal));
      super.trial(container, trial);
      Reflect.deleteProperty(container, "innerHTML"); // jsPsych itself clears the container afterwards
    }

    private handleRendered(container: HTMLElement, signal: AbortSignal): void {
      const phase: Phase = container.querySelector("#page-size")
        ? "card"
        : container.querySelector("#blind-spot")
          ? "blind-spot"
          : "report";
      const content = container.querySelector("#content")!;
      if (content.getAttribute("data-phase") === phase || !content.firstElementChild) return;
      content.setAttribute("data-phase", phase);
      setStep(phase === "card" ? "distance-card" : phase === "report" ? "distance-result" : "distance-blind-spot");
      scrollToTop(container);
      if (phase === "card") showCard(container, context, measurements, signal);
      // The plugin positions dot and square right after this; they can be moved only then.
      else if (phase === "blind-spot") {
        queueMicrotask(() => watchDot(container, context, measurements, signal));
        const skip = createButton(context, "distance_skip", "plain", () => this.skip());
        container.querySelector("#blind-spot")!.append(el("div", { class: "buttons" }, skip));
      }
      else this.report(container);
    }

    /** Skip the measurement, for participants who cannot do it, such as those who see with one eye only. */
    private skip(): void {
      this.finished.abort();
      cancelAnimationFrame(this["ball_animation_frame_id"]);
      this["jsPsych"].pluginAPI.cancelAllKeyboardResponses();
      this["jsPsych"].finishTrial({ view_dist_mm: null });
    }

    private report(container: HTMLElement): void {
      const mm = mean(measurements.measured_mm);
      const key = !isPossible(mm) ? "unlikely" : isScattered(measurements.measured_mm) ? "uneven" : "result";
      const good = key === "result";
      const again = relabelButton(container, "#redo_blindspot", context, "distance_again", good ? "plain" : "main");
      const done = relabelButton(container, "#proceed", context, "continue", good ? "main" : "plain");
      again.addEventListener("click", () => {
        this["reps_remaining"] = MEASUREMENTS; // the plugin does not reset this
        measurements.measured_mm = [];
      });
      done.addEventListener("click", () => this.finished.abort());
      const row = el("div", { class: "buttons" });
      again.replaceWith(row);
      row.append(...(good ? [done, again] : [again, done]));
      // The heading keeps the focus, so that an extra press of the space bar does not press a button.
      showText(container, context, context.text(`distance_${key}`, { distance_cm: Math.round(mm / 10) }));
    }
  };
}

/** Show the card and all controls that resize it. */
function showCard(container: HTMLElement, context: Context, measurements: Measurements, signal: AbortSignal): void {
  const item = container.querySelector<HTMLElement>("#item")!;
  const resize = (width: number) => {
    const clamped = Math.max(120, Math.min(width, container.clientWidth - 100));
    item.style.width = `${clamped}px`;
    item.style.height = `${(clamped * CARD_MM.height) / CARD_MM.width}px`;
  };
  const resizeBy = (pixels: number) => resize(parseFloat(item.style.width) + pixels);
  item.prepend(createCard());
  item.setAttribute("role", "img");
  item.setAttribute("aria-label", context.text("distance_card_done"));
  resize(START_PX);
  showText(container, context, `${context.text("distance_card")}\n\n${context.text("distance_zoom")}`);
  const done = relabelButton(container, "#end_resize_phase", context, "distance_card_done", "main");
  const smaller = createButton(context, "distance_smaller", "plain", () => resizeBy(-2));
  const larger = createButton(context, "distance_larger", "plain", () => resizeBy(2));
  const row = el("div", { class: "buttons" });
  done.replaceWith(row);
  row.append(smaller, larger, done);
  done.focus({ preventScroll: true });
  // Set the length of the sweep from the size of the card, before the plugin renders the blind spot.
  const setSweepLength = () => {
    measurements.px_per_mm = parseFloat(item.style.width) / CARD_MM.width;
    container.style.setProperty("--sweep", `${Math.round(SWEEP_MM * measurements.px_per_mm)}px`);
  };
  done.addEventListener("click", setSweepLength, { capture: true, signal });
  document.addEventListener("keydown", (event) => item.isConnected && handleArrowKey(event, resizeBy), { signal });
  followPointer(container.querySelector("#jspsych-resize-handle")!, item, resize, signal);
}

function handleArrowKey(event: KeyboardEvent, resizeBy: (pixels: number) => void): void {
  const steps: Record<string, number> = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
  const step = steps[event.key];
  if (!step) return;
  event.preventDefault();
  resizeBy(event.shiftKey || event.repeat ? 4 * step : step);
}

/** Resize the card with pen or finger; the plugin itself handles the mouse. */
function followPointer(
  handle: HTMLElement,
  item: HTMLElement,
  resize: (width: number) => void,
  signal: AbortSignal,
): void {
  const move = (event: PointerEvent) => {
    if (event.pointerType === "mouse" || !handle.hasPointerCapture(event.pointerId)) return;
    const box = item.getBoundingClientRect();
    resize(2 * (event.clientX - (box.left + box.right) / 2));
  };
  handle.addEventListener("pointerdown", (event) => handle.setPointerCapture(event.pointerId), { signal });
  handle.addEventListener("pointermove", move, { signal });
}

/** Move the dot by elapsed time, and measure the distance at each key press. */
function watchDot(container: HTMLElement, context: Context, measurements: Measurements, signal: AbortSignal): void {
  const dot = container.querySelector<HTMLElement>("#virtual-chinrest-circle")!;
  const square = container.querySelector<HTMLElement>("#virtual-chinrest-square")!;
  const remaining = container.querySelector("#click")!;
  const restLeft_px = parseFloat(dot.style.left);
  const remainingNote = createStatusLine("note");
  showText(container, context, context.text("distance_blind_spot"));
  const hint = createStatusLine("advice");
  remaining.after(remainingNote, hint);
  const count = () => {
    const values = { remaining: remaining.textContent?.trim() ?? "" };
    remainingNote.textContent = context.text("distance_blind_spot_left", values);
  };
  count();
  new MutationObserver(count).observe(remaining, { childList: true });
  let sweepStart: number | null = null; // when the dot started to move
  let lastPress = -Infinity; // when the space bar was last pressed to start it
  const frame = (now: number) => {
    if (!dot.isConnected || signal.aborted) return;
    // The plugin moves the dot two pixels per frame; this overrides its position.
    if (parseFloat(dot.style.left) === restLeft_px) sweepStart = null;
    else dot.style.left = `${dotPosition(restLeft_px, now - (sweepStart ??= now - 1))}px`;
    if (sweepStart !== null && now - sweepStart > HINT_MS) hint.textContent ||= context.text("distance_blind_spot_hint");
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
  const handleKey = (event: KeyboardEvent) => {
    if (event.key !== " " || !dot.isConnected || isForDialog(event)) return;
    event.preventDefault();
    if (event.repeat) return;
    // Hide presses that come too soon from the plugin as well.
    if (event.timeStamp - (sweepStart ?? lastPress) < TOO_SOON_MS) return event.stopPropagation();
    if (sweepStart === null) return void (lastPress = event.timeStamp);
    const mm = distanceFromOffset(centre(square) - centre(dot), measurements.px_per_mm);
    measurements.measured_mm.push(Math.round(10 * mm) / 10);
    sweepStart = null;
    hint.textContent = "";
  };
  window.addEventListener("keydown", handleKey, { capture: true, signal });
}

function centre(element: HTMLElement): number {
  const box = element.getBoundingClientRect();
  return (box.left + box.right) / 2;
}

function showText(container: HTMLElement, context: Context, text: string): void {
  const heading = el("h1", { tabindex: -1 }, context.text("distance_title"));
  const textArea = container.querySelector("#distance-words")!;
  textArea.replaceChildren(heading, el("div", { role: "status" }, ...paragraphs(text)));
  heading.focus({ preventScroll: true }); // inside the container, where jsPsych listens for the space bar
}

/** Give one of the plugin's buttons our text and style. */
function relabelButton(container: Element, id: string, context: Context, key: string, kind: string): HTMLButtonElement {
  const element = container.querySelector<HTMLButtonElement>(id)!;
  element.className = `button ${kind}`;
  element.dataset["testid"] = key;
  element.textContent = context.text(key);
  return element;
}

/**
 * Remove style attributes from all HTML written to this element and to elements inside it; call `onWrite` each time.
 */
function stripInlineStyles(element: Element, onWrite: () => void): void {
  const native = Object.getOwnPropertyDescriptor(Element.prototype, "innerHTML")!;
  Object.defineProperty(element, "innerHTML", {
    configurable: true,
    get: () => native.get!.call(element),
    set: (html: string) => {
      native.set!.call(element, html.replace(/ style="[^"]*"/g, ""));
      for (const inner of element.querySelectorAll("#content, #svgDiv")) stripInlineStyles(inner, onWrite);
      onWrite();
    },
  });
}
