/** The last words: done, left, refused, or another tab has the study. */

import { setStep } from "./dom.ts";
import type { Message } from "./screen.ts";
import { noticeScreen } from "./screens/notice.ts";
import { isUnknownSession } from "./session.ts";
import type { Visit } from "./visit.ts";
import { type CompletionReply, RefusedError } from "./wire.ts";

const SLOW_MS = 15_000;

export class EndScreens {
  private readonly visit: Visit;
  private slowTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(visit: Visit) {
    this.visit = visit;
  }

  /** Another tab has the study; when it closes, this one goes on by itself. */
  readonly showOtherTab = (): void => {
    void this.showMessage("other-tab", { text: this.visit.text("other_tab") });
  };

  /** Whether this tab has already come to the end; a new tab may be another person's. */
  showIfCompleted(): boolean {
    const completed = this.visit.environment.tab.getItem(this.visit.storageKey);
    if (!completed) return false;
    void this.showCompletion(JSON.parse(completed) as CompletionReply);
    return true;
  }

  /** Whether this person can't begin; says so. */
  showIfNotAllowed(): boolean {
    const { study, environment } = this.visit;
    if (environment.preview) return false; // whoever prepares a study may look at it at any time
    const { link, prolific_pid } = this.visit.entry;
    const reason =
      study.reason ??
      (study.personal_links_only && !link ? "link" : null) ??
      (study.prolific_required && !prolific_pid ? "prolific" : null);
    // Someone who has begun elsewhere may come back to a full or closed study: the server knows them by name.
    if (!reason || (reason === study.reason && (link || prolific_pid))) return false;
    void this.showRefusal(reason);
    return true;
  }

  /** Whatever the way has come to. */
  async show(): Promise<void> {
    const { ending, session } = this.visit;
    this.visit.leaveButton.remove();
    if (ending?.why === "declined") return this.showMessage("left", { text: this.visit.text("consent_declined") });
    if (ending?.why === "refused") return this.showError(ending.refusal);
    this.showSending();
    if (ending) {
      await this.visit.leave(ending.data);
      return this.showMessage("left", { text: this.visit.text(ending.data === "keep" ? "left_kept" : "left_withdrawn") });
    }
    if (!session) return;
    await session.outbox.waitUntilSent();
    if (this.visit.questions.hasUnanswered) return location.reload(); // and go on with what the server would not take
    const completed = await session.complete();
    this.visit.environment.tab.setItem(this.visit.storageKey, JSON.stringify(completed));
    return this.showCompletion(completed);
  }

  /** Something failed that should not: say so, and offer what this computer has. */
  async showError(error: unknown): Promise<void> {
    this.visit.leaveButton.remove();
    if (isUnknownSession(error) && !this.visit.environment.preview) return this.showRefusal(this.lostSessionReason(error));
    if (error instanceof RefusedError) return this.showRefusal(error.reason, error.message);
    console.error(error);
    return this.showMessage("error", { text: this.visit.text("error_unexpected") }, true);
  }

  /** What became of a session whose token is not good: only with a name it can go on elsewhere. */
  private lostSessionReason({ status }: RefusedError): "moved" | "gone" {
    return status === 401 && this.visit.isNamed ? "moved" : "gone";
  }

  /** Says that the last answers are on their way, and more if nothing else is said for long. */
  private showSending(): void {
    const { text } = this.visit;
    void this.showMessage("finishing", { title: text("saving"), text: text("finishing") });
    this.slowTimer = setTimeout(() => {
      void this.showMessage("finishing", { title: text("saving"), text: text("finishing_slow") }, true);
    }, SLOW_MS);
  }

  private async showCompletion({ completion_code, return_url }: CompletionReply): Promise<void> {
    const { text } = this.visit;
    this.visit.leaveButton.remove();
    if (document.fullscreenElement) await document.exitFullscreen().catch(() => {});
    const code = completion_code ? `\n\n${text("done_code", { code: completion_code })}` : "";
    const actions = return_url ? [{ name: "done_return", label: text("done_return"), href: return_url }] : [];
    return this.showMessage("done", { title: text("done_title"), text: text("done") + code, actions });
  }

  private async showRefusal(reason: string, message = ""): Promise<void> {
    const { text, study } = this.visit;
    const known = `refused_${reason}` in study.texts;
    const body = known ? text(`refused_${reason}`) : `${text("error_unexpected")}\n\n${message}`;
    if (reason !== "log_in") return this.showMessage("refused", { title: text("refused_title"), text: body }, true);
    const actions = [{ name: "rehearsal_log_in", label: text("rehearsal_log_in"), href: "../../login" }];
    return this.showMessage("refused", { title: text("rehearsal_title"), text: body, actions });
  }

  /** `download`: with a way to save what this computer still has, if anything. */
  private async showMessage(step: string, message: Message, download = false): Promise<void> {
    clearTimeout(this.slowTimer);
    const downloads = download ? await this.visit.createDownloadAction() : [];
    setStep(step);
    if (step !== "finishing") document.getElementById("delivery")?.replaceChildren(); // what it said is over
    const container = document.getElementById("experiment")!;
    void noticeScreen({ ...message, actions: [...(message.actions ?? []), ...downloads] })(container, this.visit.context());
  }
}
