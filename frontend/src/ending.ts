/** The last words: done, left, refused, or another tab has the study. */

import { mark } from "./dom.ts";
import type { Said } from "./screen.ts";
import { notice } from "./screens/notice.ts";
import { isUnknownSession } from "./session.ts";
import type { Visit } from "./visit.ts";
import { type Completed, Refused } from "./wire.ts";

const SLOW_MS = 15_000;

export class EndScreens {
  private readonly visit: Visit;
  private slow: ReturnType<typeof setTimeout> | undefined;

  constructor(visit: Visit) {
    this.visit = visit;
  }

  /** Another tab has the study; when it closes, this one goes on by itself. */
  readonly otherTab = (): void => {
    void this.show("other-tab", { text: this.visit.text("other_tab") });
  };

  /** Whether this tab has already come to the end; a new tab may be another person's. */
  repeated(): boolean {
    const done = this.visit.environment.tab.getItem(this.visit.who);
    if (!done) return false;
    void this.done(JSON.parse(done) as Completed);
    return true;
  }

  /** Whether this person can't begin; says so. */
  cannotBegin(): boolean {
    const { study, environment } = this.visit;
    if (environment.preview) return false; // whoever prepares a study may look at it at any time
    const { link, prolific_pid } = this.visit.entry;
    const reason =
      study.reason ??
      (study.personal_links_only && !link ? "link" : null) ??
      (study.prolific_required && !prolific_pid ? "prolific" : null);
    // Someone who has begun elsewhere may come back to a full or closed study: the server knows them by name.
    if (!reason || (reason === study.reason && (link || prolific_pid))) return false;
    void this.refused(reason);
    return true;
  }

  /** Whatever the way has come to. */
  async say(): Promise<void> {
    const { ending, session } = this.visit;
    this.visit.exit.close();
    if (ending?.why === "declined") return this.show("left", { text: this.visit.text("consent_declined") });
    if (ending?.why === "refused") return this.failed(ending.refusal);
    this.sending();
    if (ending) {
      await this.visit.leave(ending.data);
      return this.show("left", { text: this.visit.text(ending.data === "keep" ? "left_kept" : "left_withdrawn") });
    }
    if (!session) return;
    await session.outbox.waitUntilSent();
    if (this.visit.questions.unfinished) return location.reload(); // and go on with what the server would not take
    const completed = await session.complete();
    this.visit.environment.tab.setItem(this.visit.who, JSON.stringify(completed));
    return this.done(completed);
  }

  /** Something failed that should not: say so, and offer what this computer has. */
  async failed(error: unknown): Promise<void> {
    this.visit.exit.close();
    if (isUnknownSession(error) && !this.visit.environment.preview) return this.refused(this.lossReason(error));
    if (error instanceof Refused) return this.refused(error.reason, error.message);
    console.error(error);
    return this.show("error", { text: this.visit.text("error_unexpected") }, true);
  }

  /** What became of a session whose token is not good: only with a name it can go on elsewhere. */
  private lossReason({ status }: Refused): "moved" | "gone" {
    return status === 401 && this.visit.isNamed ? "moved" : "gone";
  }

  /** Says that the last answers are on their way, and more if nothing else is said for long. */
  private sending(): void {
    const { text } = this.visit;
    void this.show("finishing", { title: text("saving"), text: text("finishing") });
    this.slow = setTimeout(() => {
      void this.show("finishing", { title: text("saving"), text: text("finishing_slow") }, true);
    }, SLOW_MS);
  }

  private async done({ completion_code, return_url }: Completed): Promise<void> {
    const { text } = this.visit;
    this.visit.exit.close();
    if (document.fullscreenElement) await document.exitFullscreen().catch(() => {});
    const code = completion_code ? `\n\n${text("done_code", { code: completion_code })}` : "";
    const actions = return_url ? [{ name: "done_return", label: text("done_return"), href: return_url }] : [];
    return this.show("done", { title: text("done_title"), text: text("done") + code, actions });
  }

  private async refused(reason: string, message = ""): Promise<void> {
    const { text, study } = this.visit;
    const known = `refused_${reason}` in study.texts;
    const words = known ? text(`refused_${reason}`) : `${text("error_unexpected")}\n\n${message}`;
    if (reason !== "log_in") return this.show("refused", { title: text("refused_title"), text: words }, true);
    const actions = [{ name: "rehearsal_log_in", label: text("rehearsal_log_in"), href: "../../login" }];
    return this.show("refused", { title: text("rehearsal_title"), text: words, actions });
  }

  /** `download`: with a way to save what this computer still has, if anything. */
  private async show(step: string, said: Said, download = false): Promise<void> {
    clearTimeout(this.slow);
    const offer = download ? await this.visit.download() : [];
    mark(step);
    if (step !== "finishing") document.getElementById("delivery")?.replaceChildren(); // what it said is over
    const place = document.getElementById("experiment")!;
    void notice({ ...said, actions: [...(said.actions ?? []), ...offer] })(place, this.visit.context());
  }
}
