/** The trials of a visit in order: the next step, the message before each block, and what happens with an answer. */

import { Preview } from "./preview.ts";
import { type Outcome, toResponse, SameDifferent, type Scene } from "./same-different.ts";
import type { Schedule, Step } from "./schedule.ts";
import type { BreakInfo, Message } from "./screen.ts";
import { keyLabel } from "./screens/keys.ts";
import type { Node } from "./timeline-parts.ts";
import type { Visit } from "./visit.ts";
import { hasCatchTrials } from "./wire.ts";

export class Questions {
  private readonly visit: Visit;
  private schedule: Schedule | null = null;
  private current: Step = { kind: "end" };
  private verdict: { right: boolean; same: boolean } | null = null;
  private trialAbort = new AbortController();
  private breakStart_ms = 0;

  constructor(visit: Visit) {
    this.visit = visit;
  }

  /** Advance to the next step and return whether there is one. */
  readonly advance = (): boolean => {
    this.schedule ??= this.visit.session!.schedule(this.visit.study);
    this.visit.session!.choices.stops.forEach((item) => this.schedule!.endBlockBefore(item));
    this.current = this.schedule.next();
    if (this.current.kind === "break") this.breakStart_ms = Date.now();
    return this.current.kind !== "end";
  };

  readonly isAt = (kind: Step["kind"]) => (): boolean => this.current.kind === kind;

  /** Whether all trials have been answered. */
  get allAnswered(): boolean {
    return this.schedule !== null && this.current.kind === "end";
  }

  /** Whether items became open again because the server refused their answers. */
  get hasUnanswered(): boolean {
    return this.schedule !== null && this.schedule.next().kind !== "end";
  }

  /** Mark the answer to an item as not valid, so that the item is asked again. */
  readonly retract = (item: number): void => this.schedule?.retract(item);

  /** Interrupt the trial that is on the screen. */
  interrupt(): void {
    this.trialAbort.abort();
  }

  // Blocks.

  readonly blockStep = (): string => (this.current.kind === "block" && this.current.block.practice ? "practice" : "block");

  /** Return the message before a block. */
  blockMessage(): Message {
    const { text, study, session } = this.visit;
    const actions = [{ name: "continue", label: text("continue") }];
    if (this.current.kind !== "block") return { text: "", actions };
    const { block, number, blocks } = this.current;
    if (block.practice) {
      const trials = block.end - block.first;
      return { title: text("practice_title"), text: text("practice_start", { trials }), actions };
    }
    const values = { block: number, blocks };
    const title = text("block_title", values);
    if (this.schedule!.hasAnswers(block)) return { title, text: text("block_resumed"), actions };
    const afterPractice = number === 1 && study.practice.trials > 0;
    const lines = [
      afterPractice && this.practiceMessage(),
      text("block_start", values),
      number === 1 && hasCatchTrials(session!.state.trials) && text("block_catch"),
    ];
    return { title, text: lines.filter(Boolean).join("\n\n"), actions };
  }

  /** Return the message after practice, which explains the task again if fewer than half of the answers were right. */
  private practiceMessage(): string {
    const { text, study, session, keys } = this.visit;
    const share = study.practice.feedback ? session!.practiceShare() : null; // without feedback, nothing is told
    if (share === null || share >= 0.5) return text("practice_done");
    return text("practice_done_explained", { same: keyLabel(keys.same, text), different: keyLabel(keys.different, text) });
  }

  /** Wait until everything that the block shows is loaded, prepare the canvas and record the display. */
  readonly prepareBlock = async (): Promise<void> => {
    const { visit } = this;
    const { renderer } = visit;
    await renderer.ready();
    if (visit.ending) return;
    renderer.prepare(visit.display, Object.keys(visit.session!.state.images));
    if (this.current.kind === "block") visit.record("screen", renderer.describeDisplay(this.current.block.image));
  };

  currentBreak(): BreakInfo {
    const percent = this.current.kind === "break" ? this.current.percent : 0;
    return { percent, at_least_s: this.visit.study.breaks.at_least_s };
  }

  recordBreak(): void {
    this.visit.record("break", { ms: Date.now() - this.breakStart_ms });
  }

  // Trials.

  previewNode(): Node {
    const image = () => (this.current.kind === "preview" ? this.current.image : "");
    const { preview_ms } = this.visit.study.timing;
    return { type: Preview, image, preview_ms, caption: this.visit.text("preview"), scene: () => this.scene() };
  }

  trialNode(): Node {
    const { visit } = this;
    const item = () => (this.current.kind === "trial" ? this.current.item : 0);
    const { pause_ms, cue_ms, image_ms } = visit.study.timing;
    const valueOf = <Value>(column: Value[]): Value => column[item()]!;
    const trials = () => visit.session!.state.trials;
    const pair = () => visit.session!.choices.getPair(item(), trials());
    const label = (key: string) => keyLabel(key, visit.text);
    return {
      type: SameDifferent,
      item,
      image: () => valueOf(trials().image),
      locations: () => pair().locations,
      chosen: () => pair().chosen,
      pause_ms,
      cue_ms,
      image_ms,
      keys: () => visit.keys,
      question: () => visit.text("question", { same: label(visit.keys.same), different: label(visit.keys.different) }),
      scene: () => this.scene(),
      on_finish: (outcome: Outcome) => this.recordAnswer(outcome, valueOf(trials().answer)),
    };
  }

  /** Record the answer, and prepare the feedback in practice trials. */
  private recordAnswer(outcome: Outcome, answer: boolean | null): void {
    this.verdict = null;
    if (outcome.interrupted !== false) return;
    const { trial_type, trial_index, time_elapsed, plugin_version, ...data } = outcome as Outcome & Record<string, unknown>;
    const response = toResponse(data as Extract<Outcome, { interrupted: false }>);
    const session = this.visit.session!;
    session.outbox.add(response);
    this.schedule!.answer({ item: response.item, good: response.flags === "" });
    const practice = session.state.trials.practice[response.item];
    if (practice && this.visit.study.practice.feedback && answer !== null) {
      this.verdict = { right: response.same === answer, same: answer };
    }
  }

  readonly isFeedbackDue = (): boolean => this.verdict !== null;

  /** Return whether the last answer was right and what the right answer is, and clear both. */
  takeVerdict(): [right: boolean, same: boolean] {
    const { right, same } = this.verdict!;
    this.verdict = null;
    return [right, same];
  }

  private scene(): Scene {
    const { leaveButton, renderer, study } = this.visit;
    this.trialAbort = new AbortController();
    if (leaveButton.isOpen) this.trialAbort.abort(); // the dialog was opened between two trials
    return {
      timer: renderer.timer,
      canvas: renderer.canvas,
      interruptSignal: this.trialAbort.signal,
      waitUntilResumed: () => leaveButton.waitUntilAnswered(),
      min_refresh_hz: study.display.refresh_hz,
    };
  }
}
