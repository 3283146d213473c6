/** The state and actions of one visit to the page apart from its trials; main.ts puts them in order. */

import type { JsPsych } from "jspsych";

import { findSession, claimTab } from "./resume.ts";
import { type Display, computeDisplay } from "./display.ts";
import { el, setStep } from "./dom.ts";
import { LeaveButton } from "./leave-button.ts";
import { createPreviewBanner, type Environment } from "./environment.ts";
import type { DeliveryStatus } from "./outbox.ts";
import { Questions } from "./questions.ts";
import type { Context, ContoursResult, DeviceResult, DistanceResult, GammaResult, Keys, Message, Screen } from "./screen.ts";
import { noticeScreen } from "./screens/notice.ts";
import { returningScreen } from "./screens/returning.ts";
import { leaveSession, recordsFile, type SessionEnvironment, Session } from "./session.ts";
import { Renderer } from "./renderer.ts";
import { type Entry, type EventKind, PRACTICE_IMAGE, RefusedError, type StudyInfo } from "./wire.ts";

/** Why the experiment ended early. */
export type Ending =
  | { kind: "declined" }
  | { kind: "left"; data: "keep" | "withdraw" }
  | { kind: "refused"; refusal: RefusedError };

export class Visit {
  readonly study: StudyInfo;
  readonly entry: Entry;
  readonly environment: Environment;
  readonly leaveButton: LeaveButton;
  readonly storageKey: string;
  readonly renderer: Renderer;
  readonly questions = new Questions(this);
  session: Session | null = null;
  ending: Ending | null = null;
  private readonly jsPsych: JsPsych;
  private device: DeviceResult | null = null;
  private chosenKeys: Keys | null = null;
  private fullScreenState: "not-requested" | "granted" | "impossible" = "not-requested";
  private fullScreenLostAt_ms = 0;

  constructor(study: StudyInfo, entry: Entry, environment: Environment, jsPsych: JsPsych) {
    this.study = study;
    this.entry = entry;
    this.environment = environment;
    this.jsPsych = jsPsych;
    this.storageKey = [location.pathname, entry.link ?? entry.prolific_pid ?? ""].join(" ");
    this.renderer = new Renderer(study);
    document.body.append(el("p", { id: "delivery", role: "status" }));
    if (environment.preview) document.body.append(createPreviewBanner(this.text("rehearsal")));
    this.leaveButton = new LeaveButton(this.text("leave"), this.context, (data) => this.handleLeave(data));
    this.leaveButton.onOpen = () => this.handlePause();
  }

  // What screens may use.

  readonly text = (key: string, values: Record<string, string | number> = {}): string =>
    (this.study.texts[key] ?? key).replace(/\{(\w+)\}/g, (braces, name) => String(values[name] ?? braces));

  readonly context = (): Context => ({
    text: this.text,
    study: this.study,
    keys: this.keys,
    signal: this.leaveButton.controller.signal,
    display: this.display,
    ...this.shownImage(),
  });

  get keys(): Keys {
    const { same, different } = this.chosenKeys ?? this.session?.lastEvent<Keys>("keys") ?? this.study.keys;
    return { same, different };
  }

  get display(): Display {
    const distance = this.findCalibration<DistanceResult>("distance");
    return computeDisplay(this.study, distance, this.findCalibration<GammaResult>("gamma"));
  }

  /**
   * Return the image for the current screen. Before the trials this is the practice image, never one that will be asked
   * about.
   */
  private shownImage(): { image?: HTMLImageElement } {
    const toDraw = this.questions.allAnswered ? this.imagesToDraw[0] : undefined;
    const image = this.renderer.canvas.getImage(toDraw ?? "practice");
    return image ? { image } : {};
  }

  // Arrival, consent and calibration.

  /** Return whether this computer has no event of this kind yet, so that the step is still to be done. */
  isMissing(kind: EventKind): boolean {
    return !this.session?.lastEvent(kind);
  }

  /** Return whether the screen has to be measured, also again after a change of zoom or monitor. */
  needsCalibration(kind: "distance" | "gamma"): boolean {
    return this.study.calibration[kind] && !this.findCalibration(kind);
  }

  private findCalibration<Data extends { device_pixel_ratio: number }>(kind: EventKind): Data | undefined {
    return this.session?.lastEvent<Data>(kind, (data) => Math.abs(data.device_pixel_ratio - devicePixelRatio) < 0.001);
  }

  /** Whether no trial has been answered yet. */
  get hasNoResponses(): boolean {
    return !this.session || ![...this.session.outbox.records.values()].some(({ kind }) => kind === "response");
  }

  /** Whether a link or Prolific ID identifies the participant. */
  get isNamed(): boolean {
    return Boolean(this.entry.link ?? this.entry.prolific_pid);
  }

  /** Resume the session from before a reload, or complete leaving it. */
  async resume(): Promise<void> {
    const prompts = {
      returning: () => this.showScreen("returning", returningScreen),
      lost: () => this.showSessionLost(),
    };
    const session = await findSession(this.sessionEnvironment, this.isNamed, prompts);
    if (typeof session === "string") this.ending = { kind: "left", data: session };
    else if (session) this.startSession(session);
  }

  /** Show that the session no longer exists; resolve when the participant wants to begin again. */
  private async showSessionLost(): Promise<unknown> {
    const beginAgain = { name: "gone_new", label: this.text("gone_new") };
    const message = { title: this.text("gone_title"), text: this.text("refused_gone") };
    const actions = [beginAgain, ...(await this.createDownloadAction())];
    return this.showScreen("gone", noticeScreen({ ...message, actions }));
  }

  /** Return an action that saves the records on this computer, or nothing if there are none. */
  async createDownloadAction(): Promise<NonNullable<Message["actions"]>> {
    const file = await recordsFile(this.environment.storage, this.storageKey);
    return file ? [{ name: "download", label: this.text("download"), file }] : [];
  }

  /** Show a screen outside the timeline. */
  private showScreen<Result>(step: string, screen: Screen<Result>): Promise<Result> {
    setStep(step);
    return screen(document.getElementById("experiment")!, this.context());
  }

  private startSession(session: Session): void {
    this.session = session;
    claimTab(this.sessionEnvironment, session.state.session);
    if (session.hasRecords) session.recordReturn();
    this.renderer.load(session.state.images, () => this.showDelivery("waiting"));
  }

  /** Send the decision to leave. */
  async leave(data: "keep" | "withdraw"): Promise<void> {
    if (this.session) return this.session.leave(data);
    const stored = await this.environment.storage.loadSession(this.storageKey);
    if (stored) await leaveSession(stored, this.sessionEnvironment, data);
  }

  readonly storeDevice = (device: DeviceResult): void => {
    this.device = device;
  };

  readonly handleConsent = async (agreed: boolean): Promise<void> => {
    if (!agreed) return this.end({ kind: "declined" });
    try {
      this.startSession(await Session.begin(this.entry, this.sessionEnvironment));
    } catch (error) {
      if (!(error instanceof RefusedError)) throw error;
      return this.end({ kind: "refused", refusal: error });
    }
    this.showDelivery("sent");
    this.record("consent", { language: this.study.language });
    if (this.device) this.record("device", this.device);
  };

  readonly handleFullScreen = (granted: boolean): void => {
    this.fullScreenState = granted ? "granted" : "impossible";
    this.renderer.measure();
  };

  /** Return whether full screen was left before a trial. It is requested again, unless the browser cannot do it. */
  readonly isFullScreenLost = (): boolean => {
    const wasGranted = this.fullScreenState === "granted";
    const lost = wasGranted && document.fullscreenElement === null && this.questions.isAt("trial")();
    if (lost) this.fullScreenLostAt_ms ||= Date.now();
    return lost;
  };

  readonly handleFullScreenReturn = (granted: boolean): void => {
    this.fullScreenState = granted ? "granted" : "impossible";
    this.record("interruption", { reason: "full_screen", ms: Date.now() - this.fullScreenLostAt_ms, granted });
    this.fullScreenLostAt_ms = 0;
  };

  readonly storeKeys = (keys: Keys): void => {
    this.chosenKeys = keys;
    this.record("keys", keys);
  };

  record(kind: EventKind, data: object): void {
    this.session?.record(kind, data);
  }

  // Contours and end.

  /** Images whose contours are still to be drawn. */
  private get imagesToDraw(): string[] {
    if (!this.session || !this.study.contours.draw) return [];
    const finished = this.session.events("contours").map(({ data }) => data["image"]);
    const shownImages = this.session.state.trials.image.filter((name) => name !== PRACTICE_IMAGE);
    return [...new Set(shownImages)].filter((name) => !finished.includes(name));
  }

  readonly hasImagesToDraw = (): boolean => this.imagesToDraw.length > 0;

  readonly recordContours = (result: ContoursResult): void =>
    this.record("contours", { image: this.imagesToDraw[0], ...result });

  /** End the experiment early; main.ts then shows the last screen. */
  end(ending: Ending): void {
    if (this.ending) return;
    this.ending = ending;
    this.leaveButton.remove();
    this.questions.interrupt(); // the trial needs no answer any more
    this.jsPsych.abortExperiment();
  }

  /** Show at the edge of the page whether answers arrive; end the visit if the server refused. */
  readonly showDelivery = (delivery: DeliveryStatus, refusal?: RefusedError): void => {
    const line = document.getElementById("delivery");
    if (line) line.textContent = delivery === "waiting" ? this.text("offline") : "";
    document.body.dataset["delivery"] = delivery;
    const hasLeft = this.leaveButton.controller.signal.aborted;
    if (delivery === "stopped" && refusal && !hasLeft) this.end({ kind: "refused", refusal });
  };

  private get sessionEnvironment(): SessionEnvironment {
    const { storageKey, showDelivery, questions } = this;
    return { ...this.environment, storageKey, onDelivery: showDelivery, retract: questions.retract };
  }

  private handleLeave(data: "keep" | "withdraw"): void {
    this.end(this.session ? { kind: "left", data } : { kind: "declined" });
  }

  private handlePause(): void {
    const since = Date.now();
    this.questions.interrupt();
    queueMicrotask(() => void this.leaveButton.waitUntilAnswered().then(() => {
      if (!this.ending) this.record("interruption", { reason: "pause", ms: Date.now() - since });
    }));
  }
}
