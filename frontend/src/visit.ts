/** What one visit to the page knows and does around its questions: the steps of main.ts, in the order of the way. */

import type { JsPsych } from "jspsych";

import { findSession, claimTab } from "./resume.ts";
import { type Display, display } from "./display.ts";
import { el, mark } from "./dom.ts";
import { LeaveButton } from "./leave-button.ts";
import { banner, type Environment } from "./environment.ts";
import type { Delivery } from "./outbox.ts";
import { Questions } from "./questions.ts";
import type { Context, ContoursFound, DeviceFound, DistanceFound, GammaFound, Keys, Said, Screen } from "./screen.ts";
import { notice } from "./screens/notice.ts";
import { returning } from "./screens/returning.ts";
import { leaveSession, recordsFile, type Place, Session } from "./session.ts";
import { Renderer } from "./renderer.ts";
import { type Entry, type EventKind, Refused, type StudyInfo } from "./wire.ts";

/** Why the way ended before its end. */
export type Ending = { why: "declined" } | { why: "left"; data: "keep" | "withdraw" } | { why: "refused"; refusal: Refused };

export class Visit {
  readonly study: StudyInfo;
  readonly entry: Entry;
  readonly environment: Environment;
  readonly exit: LeaveButton;
  readonly who: string;
  readonly renderer: Renderer;
  readonly questions = new Questions(this);
  session: Session | null = null;
  ending: Ending | null = null;
  private readonly jsPsych: JsPsych;
  private device: DeviceFound | null = null;
  private chosen: Keys | null = null;
  private full: "unasked" | "granted" | "impossible" = "unasked";
  private lost = 0;

  constructor(study: StudyInfo, entry: Entry, environment: Environment, jsPsych: JsPsych) {
    this.study = study;
    this.entry = entry;
    this.environment = environment;
    this.jsPsych = jsPsych;
    this.who = [location.pathname, entry.link ?? entry.prolific_pid ?? ""].join(" ");
    this.renderer = new Renderer(study);
    document.body.append(el("p", { id: "delivery", role: "status" }));
    if (environment.preview) document.body.append(banner(this.text("rehearsal")));
    this.exit = new LeaveButton(this.text("leave"), this.context, (data) => this.left(data));
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
    const toDraw = this.questions.allAnswered ? this.undrawn[0] : undefined;
    const image = this.renderer.canvas.image(toDraw ?? "practice");
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

  /** Whether no question was answered yet. */
  get unasked(): boolean {
    return !this.session || ![...this.session.outbox.kept.values()].some(({ kind }) => kind === "response");
  }

  /** Whether a link or Prolific says who this is. */
  get isNamed(): boolean {
    return Boolean(this.entry.link ?? this.entry.prolific_pid);
  }

  /** Go on with the session from before a reload, or with leaving it. */
  async resume(): Promise<void> {
    const ask = { returning: () => this.asked("returning", returning), gone: () => this.gone() };
    const found = await findSession(this.place, this.isNamed, ask);
    if (typeof found === "string") this.ending = { why: "left", data: found };
    else if (found) this.came(found);
  }

  /** Says that the session is not there any more; resolves when the participant wants to begin anew. */
  private async gone(): Promise<unknown> {
    const anew = { name: "gone_new", label: this.text("gone_new") };
    const said = { title: this.text("gone_title"), text: this.text("refused_gone") };
    return this.asked("gone", notice({ ...said, actions: [anew, ...(await this.download())] }));
  }

  /** An action that saves what this computer still has, if anything. */
  async download(): Promise<NonNullable<Said["actions"]>> {
    const file = await recordsFile(this.environment.storage, this.who);
    return file ? [{ name: "download", label: this.text("download"), file }] : [];
  }

  /** A screen outside of the way. */
  private asked<Result>(step: string, screen: Screen<Result>): Promise<Result> {
    mark(step);
    return screen(document.getElementById("experiment")!, this.context());
  }

  private came(session: Session): void {
    this.session = session;
    claimTab(this.place, session.state.session);
    if (session.begun) session.comeBack();
    this.renderer.load(session.state.images, () => this.delivery("waiting"));
  }

  /** Send the choice to leave. */
  async leave(data: "keep" | "withdraw"): Promise<void> {
    if (this.session) return this.session.leave(data);
    const kept = await this.environment.storage.session(this.who);
    if (kept) await leaveSession(kept, this.place, data);
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
    this.renderer.measure();
  };

  /** Whether full screen was left before a trial; asked for again, unless the browser cannot do it. */
  readonly fullScreenLost = (): boolean => {
    const lost = this.full === "granted" && document.fullscreenElement === null && this.questions.is("trial")();
    if (lost) this.lost ||= Date.now();
    return lost;
  };

  readonly fullScreenBack = (granted: boolean): void => {
    this.full = granted ? "granted" : "impossible";
    this.record("interruption", { reason: "full_screen", ms: Date.now() - this.lost, granted });
    this.lost = 0;
  };

  readonly keysChosen = (keys: Keys): void => {
    this.chosen = keys;
    this.record("keys", keys);
  };

  record(kind: EventKind, data: object): void {
    this.session?.record(kind, data);
  }

  // The contours, and the end.

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
    this.questions.interrupt(); // nobody needs to answer any more
    this.jsPsych.abortExperiment();
  }

  /** Whether answers arrive, in a line at the edge. */
  readonly delivery = (delivery: Delivery, refusal?: Refused): void => {
    const line = document.getElementById("delivery");
    if (line) line.textContent = delivery === "waiting" ? this.text("offline") : "";
    document.body.dataset["delivery"] = delivery;
    if (delivery === "stopped" && refusal && !this.exit.left.signal.aborted) this.end({ why: "refused", refusal });
  };

  private get place(): Place {
    return { ...this.environment, who: this.who, watch: this.delivery, retract: this.questions.retract };
  }

  private left(data: "keep" | "withdraw"): void {
    this.end(this.session ? { why: "left", data } : { why: "declined" });
  }

  private paused(): void {
    const since = Date.now();
    this.questions.interrupt();
    queueMicrotask(() => void this.exit.answered().then(() => {
      if (!this.ending) this.record("interruption", { reason: "pause", ms: Date.now() - since });
    }));
  }
}
