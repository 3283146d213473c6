/** What one visit to the page knows and does: the steps of main.ts, in the order of the way. */

import type { JsPsych } from "jspsych";

import { arrive, settle } from "./arrival.ts";
import { type Display, display } from "./display.ts";
import { el, mark } from "./dom.ts";
import { Easel } from "./easel.ts";
import { Exit } from "./exit.ts";
import { type Delivery, persistently } from "./outbox.ts";
import { Preview } from "./preview.ts";
import { type Outcome, reported, SameDifferent, type Scene } from "./same-different.ts";
import type { Schedule, Step } from "./schedule.ts";
import type {
  Context, ContoursFound, DeviceFound, DistanceFound, GammaFound, Keys, Pause, Said, Screen,
} from "./screen.ts";
import { keyLabel } from "./screens/keys.ts";
import { returning } from "./screens/returning.ts";
import { depart, type Place, Session } from "./session.ts";
import type { Shelf } from "./shelf.ts";
import { Stage } from "./stage.ts";
import type { Node } from "./step.ts";
import { type Entry, type EventKind, Refused, type StudyInfo } from "./wire.ts";

/** Why the way ended before its end. */
export type Ending = { why: "declined" } | { why: "left"; data: "keep" | "withdraw" } | { why: "refused"; refusal: Refused };

export class Visit {
  readonly study: StudyInfo;
  readonly shelf: Shelf;
  readonly exit: Exit;
  readonly who: string;
  session: Session | null = null;
  ending: Ending | null = null;
  readonly entry: Entry;
  private readonly jsPsych: JsPsych;
  private readonly stage = new Stage();
  private readonly easel: Easel;
  private device: DeviceFound | null = null;
  private chosen: Keys | null = null;
  private schedule: Schedule | null = null;
  private current: Step = { kind: "end" };
  private judged: { right: boolean; same: boolean } | null = null;
  private pause = new AbortController();
  private full: "unasked" | "granted" | "impossible" = "unasked";
  private loading: Promise<unknown> = Promise.resolve();
  private measured = false;
  private began = 0;

  constructor(study: StudyInfo, entry: Entry, shelf: Shelf, jsPsych: JsPsych) {
    this.study = study;
    this.entry = entry;
    this.shelf = shelf;
    this.jsPsych = jsPsych;
    this.who = [location.pathname, entry.link ?? entry.prolific_pid ?? ""].join(" ");
    const canvas = el("canvas", { id: "easel", "aria-hidden": "true" });
    document.body.append(canvas, el("p", { id: "delivery", role: "status" }));
    this.easel = new Easel(canvas, display(study));
    this.exit = new Exit(this.text("leave"), this.context, (data) => this.left(data));
    this.exit.onask = () => this.paused();
  }

  // What screens may know.

  readonly text = (key: string, values: Record<string, string | number> = {}): string =>
    (this.study.texts[key] ?? key).replace(/\{(\w+)\}/g, (braces, name) => String(values[name] ?? braces));

  readonly context = (): Context => ({
    text: this.text,
    study: this.study,
    keys: this.keys,
    signal: this.exit.left.signal,
    display: this.display,
    ...this.shownImage(),
  });

  get keys(): Keys {
    const { same, different } = this.chosen ?? this.session?.found<Keys>("keys") ?? this.study.keys;
    return { same, different };
  }

  get display(): Display {
    return display(this.study, this.calibrated<DistanceFound>("distance"), this.calibrated<GammaFound>("gamma"));
  }

  /** Before the questions the practice picture may serve as an example, never an image that will be asked about. */
  private shownImage(): { image?: HTMLImageElement } {
    const image = this.easel.image(this.undrawn[0] && this.allAnswered ? this.undrawn[0] : "practice");
    return image ? { image } : {};
  }

  // Coming, agreeing, calibrating.

  /** Whether a step is still to be done: what this computer has reported is not asked again. */
  lacks(kind: EventKind): boolean {
    return !this.session?.found(kind);
  }

  /** Whether the screen is still to be measured, or anew, since the zoom or the monitor changed. */
  needs(kind: "distance" | "gamma"): boolean {
    return this.study.calibration[kind] && !this.calibrated(kind);
  }

  private calibrated<Data extends { device_pixel_ratio: number }>(kind: EventKind): Data | undefined {
    return this.session?.found<Data>(kind, (found) => Math.abs(found.device_pixel_ratio - devicePixelRatio) < 0.001);
  }

  /** Go on with the session from before a reload, or with leaving it. */
  async resume(): Promise<void> {
    const named = Boolean(this.entry.link ?? this.entry.prolific_pid);
    const found = await arrive(this.place, named, () => this.asked("returning", returning));
    if (typeof found === "string") this.ending = { why: "left", data: found };
    else if (found) this.came(found);
  }

  /** A screen outside of the way. */
  private asked<Result>(step: string, screen: Screen<Result>): Promise<Result> {
    mark(step);
    return screen(document.getElementById("experiment")!, this.context());
  }

  private came(session: Session): void {
    this.session = session;
    settle(this.who, session.state.session);
    if (session.begun) session.comeBack();
    this.load();
  }

  /** Send the choice to leave. */
  async leave(data: "keep" | "withdraw"): Promise<void> {
    if (this.session) return this.session.leave(data);
    const kept = await this.shelf.session(this.who);
    if (kept) await depart(kept, this.place, data);
  }

  readonly checked = (found: DeviceFound): void => {
    this.device = found;
  };

  readonly agreed = async (agreed: boolean): Promise<void> => {
    if (!agreed) return this.end({ why: "declined" });
    try {
      this.came(await Session.begin(this.entry, this.place));
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      return this.end({ why: "refused", refusal: error });
    }
    this.delivery("sent");
    this.record("consent", { language: this.study.language });
    if (this.device) this.record("device", this.device);
  };

  readonly fullScreenAsked = (granted: boolean): void => {
    this.full = granted ? "granted" : "impossible";
    this.measure();
  };

  /** Whether full screen was left; asked for again, unless the browser cannot do it. */
  readonly fullScreenLost = (): boolean => {
    const lost = this.full === "granted" && document.fullscreenElement === null;
    if (lost && this.current.kind === "trial") this.began ||= Date.now();
    return lost && this.current.kind === "trial";
  };

  readonly fullScreenBack = (granted: boolean): void => {
    this.full = granted ? "granted" : "impossible";
    this.record("interruption", { reason: "full_screen", ms: Date.now() - this.began, granted });
    this.began = 0;
  };

  readonly keysChosen = (keys: Keys): void => {
    this.chosen = keys;
    this.record("keys", keys);
  };

  record(kind: EventKind, data: object): void {
    this.session?.record(kind, data);
  }

  // The questions.

  /** Whether there is a next step; if so, it is now the current one. */
  readonly more = (): boolean => {
    this.schedule ??= this.session!.schedule(this.study);
    this.current = this.schedule.next();
    if (this.current.kind === "rest") this.began = Date.now();
    return this.current.kind !== "end";
  };

  /** Whether no question was answered yet. */
  get unasked(): boolean {
    return !this.session || ![...this.session.outbox.kept.values()].some(({ kind }) => kind === "response");
  }

  is(kind: Step["kind"]): () => boolean {
    return () => this.current.kind === kind;
  }

  readonly blockStep = (): string => (this.current.kind === "block" && this.current.block.practice ? "practice" : "block");

  /** What is said before a block. */
  blockSaid(): Said {
    const actions = [{ name: "continue", label: this.text("continue") }];
    if (this.current.kind !== "block") return { text: "", actions };
    const { block, number, blocks } = this.current;
    if (block.practice) {
      const trials = block.end - block.first;
      return { title: this.text("practice_title"), text: this.text("practice_start", { trials }), actions };
    }
    const values = { block: number, blocks };
    if (this.schedule!.begun(block)) {
      return { title: this.text("block_title", values), text: this.text("block_resumed"), actions };
    }
    const practised = number === 1 && this.study.practice.trials > 0;
    const text = [
      practised && this.text("practice_done"),
      this.text("block_start", values),
      number === 1 && this.session!.state.trials.catch.includes(true) && this.text("block_catch"),
    ];
    return { title: this.text("block_title", values), text: text.filter(Boolean).join("\n\n"), actions };
  }

  /** Everything a block needs is there before its first frame. */
  readonly prepared = async (): Promise<void> => {
    this.measure();
    await this.loading;
    if (this.ending) return;
    this.easel.display = this.display;
    document.body.dataset["step"] = "preview"; // the canvas takes over, empty
    for (const name of Object.keys(this.session!.state.images)) this.easel.picture(name);
    this.easel.background();
    if (this.current.kind === "block") this.record("screen", this.screen(this.current.block.image));
  };

  private screen(image: string): object {
    const { px_per_deg, gamma, dot_px, background, degrees, width_px: asked_px } = this.display;
    const width_px = this.easel.width_px(image);
    return {
      image,
      width_px,
      width_deg: degrees(width_px),
      width_deg_asked: px_per_deg && this.study.display.width_deg,
      shrunk: width_px < asked_px - 1, // it would not fit into the window
      dot_px,
      px_per_deg,
      gamma,
      background,
      refresh_hz: this.stage.refresh_hz,
      device_pixel_ratio: devicePixelRatio,
      window_width_px: innerWidth,
      window_height_px: innerHeight,
      full_screen: document.fullscreenElement !== null,
    };
  }

  preview(): Node {
    const image = () => (this.current.kind === "preview" ? this.current.image : "");
    const { preview_ms } = this.study.timing;
    return { type: Preview, image, preview_ms, words: this.text("preview"), scene: () => this.scene() };
  }

  pauseNow(): Pause {
    const percent = this.current.kind === "rest" ? this.current.percent : 0;
    return { percent, at_least_s: this.study.breaks.at_least_s };
  }

  rested(): void {
    this.record("break", { ms: Date.now() - this.began });
    this.began = 0;
  }

  trial(): Node {
    const item = () => (this.current.kind === "trial" ? this.current.item : 0);
    const { pause_ms, cue_ms, image_ms } = this.study.timing;
    const of = <Value>(column: Value[]): Value => column[item()]!;
    const trials = () => this.session!.state.trials;
    const places = () => [of(trials().x1), of(trials().y1), of(trials().x2), of(trials().y2)];
    const label = (key: string) => keyLabel(key, this.text);
    return {
      type: SameDifferent,
      item,
      image: () => of(trials().image),
      places,
      pause_ms,
      cue_ms,
      image_ms,
      keys: () => this.keys,
      question: () => this.text("question", { same: label(this.keys.same), different: label(this.keys.different) }),
      scene: () => this.scene(),
      on_finish: (outcome: Outcome) => this.answered(outcome, of(trials().answer)),
    };
  }

  /** Keep the answer, and look whether it is to be asked again. */
  private answered(outcome: Outcome, answer: boolean | null): void {
    this.judged = null;
    if (outcome.interrupted !== false) return;
    const { trial_type, trial_index, time_elapsed, plugin_version, ...data } = outcome as Outcome & Record<string, unknown>;
    const response = reported(data as Extract<Outcome, { interrupted: false }>);
    this.session!.outbox.add(response);
    this.schedule!.answer({ item: response.item, good: response.flags === "" });
    const practice = this.session!.state.trials.practice[response.item];
    if (practice && this.study.practice.feedback && answer !== null) {
      this.judged = { right: response.same === answer, same: answer };
    }
  }

  readonly feedbackDue = (): boolean => this.judged !== null;

  /** Whether the last answer was right, and what would have been. */
  verdict(): [right: boolean, same: boolean] {
    const { right, same } = this.judged!;
    this.judged = null;
    return [right, same];
  }

  private scene(): Scene {
    this.pause = new AbortController();
    if (this.exit.open) this.pause.abort(); // asked between two trials
    return {
      stage: this.stage,
      easel: this.easel,
      interrupted: this.pause.signal,
      resumed: () => this.exit.answered(),
      least_hz: this.study.display.refresh_hz,
    };
  }

  // The contours, and the end.

  private get allAnswered(): boolean {
    return this.schedule !== null && this.current.kind === "end";
  }

  /** Images whose contours are still to be drawn. */
  private get undrawn(): string[] {
    if (!this.session || !this.study.contours.draw) return [];
    const drawn = this.session.events("contours").map(({ data }) => data["image"]);
    const { image, practice, catch: caught } = this.session.state.trials;
    const asked = image.filter((_, item) => !practice[item] && !caught[item]);
    return [...new Set(asked)].filter((name) => !drawn.includes(name));
  }

  readonly toDraw = (): boolean => this.undrawn.length > 0;

  readonly drawn = (found: ContoursFound): void => this.record("contours", { image: this.undrawn[0], ...found });

  /** End the way here; main.ts says the last word. */
  end(ending: Ending): void {
    if (this.ending) return;
    this.ending = ending;
    this.exit.close();
    this.pause.abort(); // a question that nobody needs to answer any more
    this.jsPsych.abortExperiment();
  }

  /** Whether answers arrive, in a line at the edge. */
  readonly delivery = (delivery: Delivery, refusal?: Refused): void => {
    const line = document.getElementById("delivery");
    if (line) line.textContent = delivery === "waiting" ? this.text("offline") : "";
    document.body.dataset["delivery"] = delivery;
    if (delivery === "stopped" && refusal && !this.exit.left.signal.aborted) this.end({ why: "refused", refusal });
  };

  /** Whether the server refused an answer after all seemed to be said. */
  get unfinished(): boolean {
    return this.schedule !== null && this.schedule.next().kind !== "end";
  }

  private get place(): Place {
    const retract = (item: number) => this.schedule?.retract(item);
    return { shelf: this.shelf, who: this.who, watch: this.delivery, retract };
  }

  private left(data: "keep" | "withdraw"): void {
    this.end(this.session ? { why: "left", data } : { why: "declined" });
  }

  private paused(): void {
    const since = Date.now();
    this.pause.abort();
    queueMicrotask(() => void this.exit.answered().then(() => {
      if (!this.ending) this.record("interruption", { reason: "pause", ms: Date.now() - since });
    }));
  }

  /** Fetch and decode the images while the participant reads. */
  private load(): void {
    const { images } = this.session!.state;
    if (!this.study.display.full_screen) this.measure(); // else in full screen, which may refresh otherwise
    this.loading = Promise.all([this.loading, ...Object.entries(images).map(async ([name, info]) => {
      const image = await persistently(() => decoded(info.url), () => this.delivery("waiting"));
      this.easel.add(name, image, info);
    })]);
  }

  private measure(): void {
    if (!this.measured) this.loading = Promise.all([this.loading, this.stage.measure()]);
    this.measured = true;
  }
}

async function decoded(url: string): Promise<HTMLImageElement> {
  const image = new Image();
  image.src = url;
  await image.decode();
  return image;
}
