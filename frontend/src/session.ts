/** One participant's session: its trials from the server, its records on this computer, and how they get together. */

import { Choices } from "./choices.ts";
import type { Environment } from "./environment.ts";
import { type Delivery, Outbox, retryUntilAnswered } from "./outbox.ts";
import { type Given, Schedule } from "./schedule.ts";
import type { StoredRecord, StoredSession, BrowserStorage } from "./storage.ts";
import {
  type Completed, type Entry, type Event, type EventKind, type NumberedRecord, Refused, type Response, type State, type StudyInfo,
} from "./wire.ts";

export interface Place extends Pick<Environment, "server" | "storage" | "tab"> {
  /** Who came to which study: the key under which this browser keeps the session. */
  who: string;
  watch: (delivery: Delivery, refusal?: Refused) => void;
  /** Told of an answer the server will never take. */
  retract: (item: number) => void;
}

export class Session {
  readonly state: State;
  readonly outbox: Outbox;
  readonly choices: Choices;
  private readonly kept: StoredSession;
  private readonly place: Place;

  private constructor(state: State, outbox: Outbox, choices: Choices, kept: StoredSession, place: Place) {
    this.state = state;
    this.outbox = outbox;
    this.choices = choices;
    this.kept = kept;
    this.place = place;
    choices.update(state);
    outbox.startAt(state.next_seq);
    addEventListener("online", () => outbox.retryNow());
    addEventListener("pagehide", () => outbox.sendBeforeUnload());
  }

  /** A new session for someone who agreed; or, by their link or Prolific's name, the one they had elsewhere. */
  static async begin(entry: Entry, place: Place): Promise<Session> {
    const asked = { ...entry, entry: await loadOrCreateEntry(place) };
    const { token, ...state } = await retryUntilAnswered(() => place.server.begin(asked), () => place.watch("waiting"));
    const found = await place.storage.session(place.who).catch(() => undefined);
    const isBack = found?.session === state.session;
    const before = isBack ? found.before : found && ({ leaving: "keep", ...found } as const);
    const kept: StoredSession = { session: state.session, token, ...(before ? { before } : {}) };
    await place.storage.storeSession(place.who, kept).catch(() => {});
    if (isBack) return requireSession(await Session.resume(kept, place));
    const choices = new Choices();
    return new Session(state, await openOutbox(kept, place, choices), choices, kept, place);
  }

  /**
   * The session this browser had before a reload; null where its token is no longer good, because the session went on
   * elsewhere or is gone: what could not be delivered then stays here, for `begin`. What an earlier page could not send
   * goes first, so that the server's answer takes it into account.
   */
  static async resume(kept: StoredSession, place: Place): Promise<Session | null> {
    let known = false;
    const watch: Place["watch"] = (delivery, refusal) => {
      if (known || delivery !== "stopped") place.watch(delivery, refusal);
    };
    const choices = new Choices();
    const outbox = await openOutbox(kept, { ...place, watch }, choices);
    const undelivered = await outbox.waitUntilSent().catch((refusal: Refused) => refusal);
    try {
      const state = await retryUntilAnswered(() => place.server.state(kept.token), () => place.watch("waiting"));
      if (undelivered && state.status === "active") {
        if (undelivered.reason !== "elsewhere" || !(await skipConflictingRecords(kept, place, state.next_seq))) throw undelivered;
        outbox.close();
        return Session.resume(kept, place);
      }
      known = true;
      return new Session(state, outbox, choices, kept, place);
    } catch (error) {
      if (!isUnknownSession(error)) throw error;
      if (!undelivered) await clearSession(kept, place);
      return null;
    }
  }

  /** Whether anything was reported before this page. */
  get begun(): boolean {
    return this.outbox.next > 0;
  }

  /** What this computer last reported of a kind, if `like` says that it still holds. */
  found<Data>(kind: EventKind, like: (data: Data) => boolean = () => true): Data | undefined {
    return this.events(kind).map(({ data }) => data as Data).findLast(like);
  }

  events(kind: EventKind): Event[] {
    return [...this.outbox.kept.values()].filter((record) => record.kind === kind) as Event[];
  }

  record(kind: EventKind, data: object): void {
    this.outbox.add({ kind, at_ms: Date.now(), data: { ...data } });
  }

  /** Report that the participant is back, and which block is asked anew because they were away for long. */
  comeBack(): void {
    const records = [...this.outbox.kept.values()];
    const times = records.map((record) => (record.kind === "response" ? record.shown_at_ms : record.at_ms));
    const away_ms = times.length ? Date.now() - Math.max(...times) : null;
    this.record("resumed", { away_ms, repeat: this.state.repeat_block ? this.state.next_item : null });
  }

  /** What is still to be asked. The server has everything and says so; only this computer counts how often. */
  schedule(study: StudyInfo): Schedule {
    const schedule = new Schedule(this.state.trials, study.breaks.every_trials, study.tries);
    const answered = new Set(this.state.answered);
    const failed = this.failures().filter((item) => !answered.has(item));
    const elsewhere = this.state.asked_again.filter((item) => !failed.includes(item));
    const given = (items: Iterable<number>, good: boolean): Given[] => Array.from(items, (item) => ({ item, good }));
    schedule.recall([...given(answered, true), ...given([...failed, ...elsewhere], false)]);
    if (this.state.repeat_block) schedule.repeatFrom(this.state.next_item);
    return schedule;
  }

  /** The item of every answer that did not count, since a block was last begun anew. */
  private failures(): number[] {
    const records = [...this.outbox.kept.values()];
    const restart = records.findLast((record) => record.kind === "resumed" && record.data["repeat"] !== null);
    return records.flatMap((record) => {
      if (record.seq < (restart?.seq ?? 0)) return [];
      const answer = (record.refused ?? record) as NumberedRecord;
      return answer.kind === "response" && (record.refused || answer.flags) ? [answer.item] : [];
    });
  }

  /** Resolves once the server has counted and lacks nothing. Nothing then stays on this computer. */
  async complete(): Promise<Completed> {
    for (;;) {
      await this.outbox.waitUntilSent();
      try {
        const { token } = this.kept;
        const count = this.outbox.next;
        const { server, watch } = this.place;
        const completed = await retryUntilAnswered(() => server.complete(token, count), () => watch("waiting"));
        await clearSession(this.kept, this.place);
        return completed;
      } catch (error) {
        if (!(error instanceof Refused) || !error.missing.length) throw error;
        this.outbox.resend(error.missing, { kind: "interruption", at_ms: Date.now(), data: { reason: "lost" } });
      }
    }
  }

  /** Leave for good, with the answers kept or withdrawn. Nothing then stays on this computer. */
  leave(data: "keep" | "withdraw"): Promise<void> {
    return leaveSession(this.kept, this.place, data, this.outbox);
  }
}

/**
 * Leave a session for good. The choice is kept before it is sent, so that a page that dies meanwhile does not undo it:
 * the next one asks this again; but of a session that is lost to this page nobody can leave. `why` goes with the
 * answers that stay.
 */
export async function leaveSession(
  kept: StoredSession,
  place: Place,
  data: "keep" | "withdraw",
  opened?: Outbox,
  why: object = {},
): Promise<void> {
  const keep = (session: StoredSession) => place.storage.storeSession(place.who, session).catch(() => {});
  const { leaving: _leaving, ...here } = kept;
  await keep({ ...here, leaving: data });
  try {
    if (data === "keep") await sendRemaining(opened ?? (await openOutbox(kept, place)), { data, ...why });
    opened?.close();
    await retryUntilAnswered(() => place.server.leave(kept.token, data), () => place.watch("waiting"));
  } catch (error) {
    if (isUnknownSession(error)) await keep(here);
    throw error;
  }
  await clearSession(kept, place);
}

/** Everything that is left to send, and that the participant left. */
async function sendRemaining(outbox: Outbox, data: Event["data"]): Promise<void> {
  const said = [...outbox.kept.values()].some(({ kind }) => kind === "left");
  if (!said) outbox.add({ kind: "left", at_ms: Date.now(), data });
  await outbox.waitUntilSent();
}

/**
 * Nothing of a session stays here, and the one whose place it took is back in it. The server has all it needs: a disk
 * that is full or gone keeps nobody from the last screen and its code.
 */
export async function clearSession({ session, before }: StoredSession, { storage, who }: Place): Promise<void> {
  await storage.clear(who, session).catch(() => {});
  if (before) await storage.storeSession(who, before).catch(() => {});
}

/** Whether the server knows no session of this token: it goes on elsewhere under a newer one, or is not there any more. */
export function isUnknownSession(error: unknown): error is Refused {
  return error instanceof Refused && (error.status === 401 || error.status === 404);
}

/** A session that was begun a moment ago, unless someone else was even faster. */
function requireSession(session: Session | null): Session {
  if (!session) throw new Refused(401, { error: "NotAllowed" });
  return session;
}

/** Everything this computer has of a session, for the researcher, when nothing else works; null if it has nothing. */
export async function recordsFile(storage: BrowserStorage, who: string): Promise<File | null> {
  const kept = await storage.session(who).catch(() => undefined);
  const records: StoredRecord[] = [];
  for (let each = kept; each; each = each.before) records.push(...(await storage.records(each.session).catch(() => [])));
  if (!kept || !records.length) return null;
  const content = { study: location.pathname, session: kept.session, records };
  return new File([JSON.stringify(content, null, 1)], `vseg-${kept.session}.json`, { type: "application/json" });
}

/**
 * Another tab had gone on with this session, and the server has its records under numbers that this computer has used
 * for others. Those are not sent again, so that whoever comes back can go on. False if there are none of them.
 */
async function skipConflictingRecords({ session }: StoredSession, { storage }: Place, next_seq: number): Promise<boolean> {
  const taken = (await storage.records(session)).filter(({ seq, sent }) => !sent && seq < next_seq);
  await storage.storeRecords(taken.map((record) => ({ ...record, sent: true })));
  return taken.length > 0;
}

/** The name under which someone asks to begin, on the disk before they ask: asking twice then begins nothing twice. */
async function loadOrCreateEntry({ storage, who }: Place): Promise<string> {
  const entry = (await storage.entry(who).catch(() => undefined)) ?? random();
  await storage.storeEntry(who, entry).catch(() => {});
  return entry;
}

/** 128 bits by chance; `randomUUID` has fewer and is not there on pages without https. */
export function random(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function openOutbox(
  { session, token }: StoredSession,
  { server, storage, watch, retract }: Place,
  choices = new Choices(),
): Promise<Outbox> {
  const post = async (records: NumberedRecord[], last?: boolean) => {
    const reply = await server.records(token, records, last);
    choices.update(reply);
    return reply.stored;
  };
  const refused = (record: NumberedRecord) => record.kind === "response" && retract((record as Response).item);
  return Outbox.open({ storage, session, post, watch, refused });
}
