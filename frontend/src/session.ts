/** The session of one participant: its trials from the server, its records on this computer, and their exchange. */

import { Choices } from "./choices.ts";
import type { Environment } from "./environment.ts";
import { type DeliveryStatus, Outbox, retryUntilReply } from "./outbox.ts";
import { type PastAnswer, Schedule } from "./schedule.ts";
import type { StoredRecord, StoredSession, BrowserStorage } from "./storage.ts";
import {
  type CompletionReply, type Entry, type Event, type EventKind, type NumberedRecord, RefusedError, type Response,
  type State, type StudyInfo,
} from "./wire.ts";

export interface SessionEnvironment extends Pick<Environment, "server" | "storage" | "tab"> {
  /** Study and participant: the key under which this browser stores the session. */
  storageKey: string;
  onDelivery: (delivery: DeliveryStatus, refusal?: RefusedError) => void;
  /** Called with the item of an answer that the server refuses permanently. */
  retract: (item: number) => void;
}

export class Session {
  readonly state: State;
  readonly outbox: Outbox;
  readonly choices: Choices;
  private readonly stored: StoredSession;
  private readonly environment: SessionEnvironment;

  private constructor(
    state: State,
    outbox: Outbox,
    choices: Choices,
    stored: StoredSession,
    environment: SessionEnvironment,
  ) {
    this.state = state;
    this.outbox = outbox;
    this.choices = choices;
    this.stored = stored;
    this.environment = environment;
    choices.update(state);
    outbox.startAt(state.next_seq);
    addEventListener("online", () => outbox.retryNow());
    addEventListener("pagehide", () => outbox.sendBeforeUnload());
  }

  /** Start a session after consent; for a link or Prolific ID, the server may return the session started elsewhere. */
  static async begin(entry: Entry, environment: SessionEnvironment): Promise<Session> {
    const request = { ...entry, entry: await loadOrCreateEntry(environment) };
    const { server, onDelivery } = environment;
    const { token, ...state } = await retryUntilReply(() => server.begin(request), () => onDelivery("waiting"));
    const previous = await environment.storage.loadSession(environment.storageKey).catch(() => undefined);
    const isBack = previous?.session === state.session;
    const before = isBack ? previous.before : previous && ({ leaving: "keep", ...previous } as const);
    const stored: StoredSession = { session: state.session, token, ...(before ? { before } : {}) };
    await environment.storage.storeSession(environment.storageKey, stored).catch(() => {});
    if (isBack) return requireSession(await Session.resume(stored, environment));
    const choices = new Choices();
    return new Session(state, await openOutbox(stored, environment, choices), choices, stored, environment);
  }

  /**
   * Resume the session stored in this browser. Return null if its token is no longer valid, because the session
   * continued elsewhere or no longer exists; undelivered records then stay here for `begin`. Records of an earlier page
   * are sent first, so that the state returned by the server includes them.
   */
  static async resume(stored: StoredSession, environment: SessionEnvironment): Promise<Session | null> {
    let isActive = false;
    const onDelivery: SessionEnvironment["onDelivery"] = (delivery, refusal) => {
      if (isActive || delivery !== "stopped") environment.onDelivery(delivery, refusal);
    };
    const choices = new Choices();
    const outbox = await openOutbox(stored, { ...environment, onDelivery }, choices);
    const undelivered = await outbox.waitUntilSent().catch((refusal: RefusedError) => refusal);
    try {
      const waiting = () => environment.onDelivery("waiting");
      const state = await retryUntilReply(() => environment.server.state(stored.token), waiting);
      if (undelivered && state.status === "active") {
        const isElsewhere = undelivered.reason === "elsewhere";
        if (!isElsewhere || !(await skipConflictingRecords(stored, environment, state.next_seq))) throw undelivered;
        outbox.close();
        return Session.resume(stored, environment);
      }
      isActive = true;
      return new Session(state, outbox, choices, stored, environment);
    } catch (error) {
      if (!isUnknownSession(error)) throw error;
      if (!undelivered) await clearSession(stored, environment);
      return null;
    }
  }

  /** Whether the session had records before this page was loaded. */
  get hasRecords(): boolean {
    return this.outbox.next > 0;
  }

  /** Return the data of the last event of a kind for which `isValid` holds. */
  lastEvent<Data>(kind: EventKind, isValid: (data: Data) => boolean = () => true): Data | undefined {
    return this.events(kind).map(({ data }) => data as Data).findLast(isValid);
  }

  events(kind: EventKind): Event[] {
    return [...this.outbox.records.values()].filter((record) => record.kind === kind) as Event[];
  }

  record(kind: EventKind, data: object): void {
    this.outbox.add({ kind, at_ms: Date.now(), data: { ...data } });
  }

  /** Record that the participant is back, and which block is repeated because of a long absence. */
  recordReturn(): void {
    const records = [...this.outbox.records.values()];
    const times = records.map((record) => (record.kind === "response" ? record.shown_at_ms : record.at_ms));
    const away_ms = times.length ? Date.now() - Math.max(...times) : null;
    this.record("resumed", { away_ms, repeat: this.state.repeat_block ? this.state.next_item : null });
  }

  /**
   * Create the schedule of the items still to be asked. The server knows the answers; attempts are counted from the
   * records on this computer. Some of these may not be stored, if another tab has used their numbers, so an item that
   * the server wants is asked at least once.
   */
  schedule(study: StudyInfo): Schedule {
    const schedule = new Schedule(this.state.trials, study.breaks.every_trials, study.tries);
    const answered = new Set(this.state.answered);
    const flagged = new Map<number, number>(this.state.asked_again.map((item) => [item, 0]));
    const refused: PastAnswer[] = [];
    for (const answer of this.failedAnswers().filter(({ item }) => !answered.has(item))) {
      if (answer.refused) refused.push(answer);
      else flagged.set(answer.item, (flagged.get(answer.item) ?? 0) + 1);
    }
    const failed = [...flagged].flatMap(([item, count]) =>
      Array<PastAnswer>(Math.min(Math.max(count, 1), study.tries - 1)).fill({ item, good: false }));
    schedule.restoreAnswers([...Array.from(answered, (item) => ({ item, good: true })), ...failed, ...refused]);
    if (this.state.repeat_block) schedule.repeatFrom(this.state.next_item);
    return schedule;
  }

  /** Return the share of practice trials whose last answer was right, or null if this computer has none. */
  practiceShare(): number | null {
    const { practice, answer } = this.state.trials;
    const right = new Map<number, boolean>();
    for (const record of this.outbox.records.values()) {
      if (record.kind !== "response" || !practice[record.item]) continue;
      right.set(record.item, record.same === answer[record.item]);
    }
    return right.size ? [...right.values()].filter(Boolean).length / right.size : null;
  }

  /** Return each answer that did not count, since a block was last repeated. */
  private failedAnswers(): PastAnswer[] {
    const records = [...this.outbox.records.values()];
    const restart = records.findLast((record) => record.kind === "resumed" && record.data["repeat"] !== null);
    return records.flatMap((record) => {
      if (record.seq < (restart?.seq ?? 0)) return [];
      const answer = (record.refused ?? record) as NumberedRecord;
      if (answer.kind !== "response" || !(record.refused || answer.flags)) return [];
      return [{ item: answer.item, good: false, refused: Boolean(record.refused) }];
    });
  }

  /** Resolve when the server has all records; then clear this computer's storage. */
  async complete(): Promise<CompletionReply> {
    for (;;) {
      await this.outbox.waitUntilSent();
      try {
        const { token } = this.stored;
        const count = this.outbox.next;
        const { server, onDelivery } = this.environment;
        const completed = await retryUntilReply(() => server.complete(token, count), () => onDelivery("waiting"));
        await clearSession(this.stored, this.environment);
        return completed;
      } catch (error) {
        if (!(error instanceof RefusedError) || !error.missing.length) throw error;
        this.outbox.resend(error.missing, { kind: "interruption", at_ms: Date.now(), data: { reason: "lost" } });
      }
    }
  }

  /** Leave for good, keeping or withdrawing the answers; then clear this computer's storage. */
  leave(data: "keep" | "withdraw"): Promise<void> {
    return leaveSession(this.stored, this.environment, data, this.outbox);
  }
}

/**
 * Leave a session for good. The decision is stored before it is sent, so that the next page can complete it if this one
 * is closed. It is removed again if the server does not know the session. `details` are recorded with the event when
 * the answers are kept.
 */
export async function leaveSession(
  stored: StoredSession,
  environment: SessionEnvironment,
  data: "keep" | "withdraw",
  openedOutbox?: Outbox,
  details: object = {},
): Promise<void> {
  const { storage, storageKey } = environment;
  const store = (session: StoredSession) => storage.storeSession(storageKey, session).catch(() => {});
  const { leaving: _leaving, ...staying } = stored;
  await store({ ...staying, leaving: data });
  try {
    if (data === "keep") {
      await sendRemaining(openedOutbox ?? (await openOutbox(stored, environment)), { data, ...details });
    }
    openedOutbox?.close();
    await retryUntilReply(() => environment.server.leave(stored.token, data), () => environment.onDelivery("waiting"));
  } catch (error) {
    if (isUnknownSession(error)) await store(staying);
    throw error;
  }
  await clearSession(stored, environment);
}

/** Send all remaining records, and the event that the participant left. */
async function sendRemaining(outbox: Outbox, data: Event["data"]): Promise<void> {
  const isReported = [...outbox.records.values()].some(({ kind }) => kind === "left");
  if (!isReported) outbox.add({ kind: "left", at_ms: Date.now(), data });
  await outbox.waitUntilSent();
}

/**
 * Remove a session from storage and restore the one stored below it. Errors are ignored: the server has everything, and
 * a failing disk must not hide the last screen and its completion code.
 */
export async function clearSession(
  { session, before }: StoredSession,
  { storage, storageKey }: SessionEnvironment,
): Promise<void> {
  await storage.clear(storageKey, session).catch(() => {});
  if (before) await storage.storeSession(storageKey, before).catch(() => {});
}

/** Return whether the server does not know this token: the session continues elsewhere, or no longer exists. */
export function isUnknownSession(error: unknown): error is RefusedError {
  return error instanceof RefusedError && (error.status === 401 || error.status === 404);
}

/** Return the session; throw if it was continued elsewhere in the meantime. */
function requireSession(session: Session | null): Session {
  if (!session) throw new RefusedError(401, { error: "NotAllowed" });
  return session;
}

/** Create a file with all records on this computer, for the researcher, if nothing else works; null without records. */
export async function recordsFile(storage: BrowserStorage, storageKey: string): Promise<File | null> {
  const stored = await storage.loadSession(storageKey).catch(() => undefined);
  const records: StoredRecord[] = [];
  for (let each = stored; each; each = each.before) {
    records.push(...(await storage.loadRecords(each.session).catch(() => [])));
  }
  if (!stored || !records.length) return null;
  const content = { study: location.pathname, session: stored.session, records };
  return new File([JSON.stringify(content, null, 1)], `vseg-${stored.session}.json`, { type: "application/json" });
}

/**
 * Mark records as sent whose numbers the server already has from another tab, so that this tab can continue. Return
 * whether there are any.
 */
async function skipConflictingRecords(
  { session }: StoredSession,
  { storage }: SessionEnvironment,
  next_seq: number,
): Promise<boolean> {
  const conflicting = (await storage.loadRecords(session)).filter(({ seq, sent }) => !sent && seq < next_seq);
  await storage.storeRecords(conflicting.map((record) => ({ ...record, sent: true })));
  return conflicting.length > 0;
}

/**
 * Return the ID of this request to begin. It is stored before the request, so that a repeated request starts no second
 * session.
 */
async function loadOrCreateEntry({ storage, storageKey }: SessionEnvironment): Promise<string> {
  const entry = (await storage.loadEntry(storageKey).catch(() => undefined)) ?? randomId();
  await storage.storeEntry(storageKey, entry).catch(() => {});
  return entry;
}

/** Return 128 random bits as hexadecimal; `randomUUID` has fewer and is missing on pages without https. */
export function randomId(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function openOutbox(
  { session, token }: StoredSession,
  { server, storage, onDelivery, retract }: SessionEnvironment,
  choices = new Choices(),
): Promise<Outbox> {
  const post = async (records: NumberedRecord[], last?: boolean) => {
    const reply = await server.records(token, records, last);
    choices.update(reply);
    return reply.stored;
  };
  const onRefused = (record: NumberedRecord) => record.kind === "response" && retract((record as Response).item);
  return Outbox.open({ storage, session, post, onDelivery, onRefused });
}
