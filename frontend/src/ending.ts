/** The last screens: completed, left, refused, failed, or open in another tab. */

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

  /** Show that the study is open in another tab. This tab continues by itself when the other one closes. */
  readonly showOtherTab = (): void => {
    void this.showMessage("other-tab", { text: this.visit.text("other_tab") });
  };

  /**
   * Show the completion screen if this tab has completed the session, and return whether it has. A new tab may belong
   * to another person.
   */
  showIfCompleted(): boolean {
    const completed = this.visit.environment.tab.getItem(this.visit.storageKey);
    if (!completed) return false;
    void this.showCompletion(JSON.parse(completed) as CompletionReply);
    return true;
  }

  /** Show the reason if this person is not allowed to begin, and return whether there is one. */
  showIfNotAllowed(): boolean {
    const { study, environment } = this.visit;
    if (environment.preview) return false; // a researcher may preview the study at any time
    const { link, prolific_pid } = this.visit.entry;
    const reason =
      study.reason ??
      (study.personal_links_only && !link ? "link" : null) ??
      (study.prolific_required && !prolific_pid ? "prolific" : null);
    // A participant known to the server by link or Prolific ID may return to a full or closed study.
    if (!reason || (reason === study.reason && (link || prolific_pid))) return false;
    void this.showRefusal(reason);
    return true;
  }

  /** Show the screen for how the session ended. */
  async show(): Promise<void> {
    const { ending, session } = this.visit;
    this.visit.leaveButton.remove();
    if (ending?.kind === "declined") return this.showMessage("left", { text: this.visit.text("consent_declined") });
    if (ending?.kind === "refused") return this.showError(ending.refusal);
    this.showSending();
    if (ending) {
      await this.visit.leave(ending.data);
      const key = ending.data === "keep" ? "left_kept" : "left_withdrawn";
      return this.showMessage("left", { text: this.visit.text(key) });
    }
    if (!session) return;
    await session.outbox.waitUntilSent();
    // Ask the items again whose answers the server refused.
    if (this.visit.questions.hasUnanswered) return location.reload();
    const completed = await session.complete();
    this.visit.environment.tab.setItem(this.visit.storageKey, JSON.stringify(completed));
    return this.showCompletion(completed);
  }

  /** Show an unexpected error or a refusal, and offer to download the records on this computer. */
  async showError(error: unknown): Promise<void> {
    this.visit.leaveButton.remove();
    if (isUnknownSession(error) && !this.visit.environment.preview) {
      return this.showRefusal(this.lostSessionReason(error));
    }
    if (error instanceof RefusedError) return this.showRefusal(error.reason, error.message);
    console.error(error);
    return this.showMessage("error", { text: this.visit.text("error_unexpected") }, true);
  }

  /** Return why a token is no longer valid. Only a named participant can have continued elsewhere. */
  private lostSessionReason({ status }: RefusedError): "moved" | "gone" {
    return status === 401 && this.visit.isNamed ? "moved" : "gone";
  }

  /** Show that the last answers are being sent; after a while, show a longer explanation. */
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
    const hasText = `refused_${reason}` in study.texts;
    const body = hasText ? text(`refused_${reason}`) : `${text("error_unexpected")}\n\n${message}`;
    if (reason !== "log_in") return this.showMessage("refused", { title: text("refused_title"), text: body }, true);
    const actions = [{ name: "rehearsal_log_in", label: text("rehearsal_log_in"), href: "../../login" }];
    return this.showMessage("refused", { title: text("rehearsal_title"), text: body, actions });
  }

  /** Show a message; with `download`, offer to save the records that are still on this computer. */
  private async showMessage(step: string, message: Message, download = false): Promise<void> {
    clearTimeout(this.slowTimer);
    const downloads = download ? await this.visit.createDownloadAction() : [];
    setStep(step);
    // The delivery message is out of date by now.
    if (step !== "finishing") document.getElementById("delivery")?.replaceChildren();
    const container = document.getElementById("experiment")!;
    const actions = [...(message.actions ?? []), ...downloads];
    void noticeScreen({ ...message, actions })(container, this.visit.context());
  }
}
