/**
 * Nothing lost: a record is on this computer's disk before it is sent, and it is sent until the server says that it
 * has it. Nobody waits for that: `add` returns at once.
 */

import type { StoredRecord, BrowserStorage } from "./storage.ts";
import { type NumberedRecord, RefusedError, type Report } from "./wire.ts";

/** `waiting`: the server can't be reached, we try again. `stopped`: it refused; everything is kept here. */
export type DeliveryStatus = "sent" | "sending" | "waiting" | "stopped";

/** Sends records; resolves with the numbers stored. `last`: the page is going away. */
export type Post = (records: NumberedRecord[], last?: boolean) => Promise<number[]>;

export interface Settings {
  storage: BrowserStorage;
  session: string;
  post: Post;
  onDelivery?: (delivery: DeliveryStatus, refusal?: RefusedError) => void;
  /** Told of a record the server will never take. */
  onRefused?: (record: NumberedRecord) => void;
  wait?: Wait;
}

/** Resolves after the pause before the next try, the `failures`-th one; or early, when `early` does. */
export type Wait = (failures: number, early: Promise<void>) => Promise<void>;

const RECORD_REFUSALS = new Set([413, 422]); // refusals that say something of a record, not of the session
const MAX_RECORDS = 100; // records in one request
const MAX_CHARACTERS = 200_000; // characters in one request; the server takes 256 kB
const MAX_KEEPALIVE_CHARACTERS = 60_000; // a page that goes away may send 64 kB
const MAX_REASON_CHARACTERS = 150; // characters, six bytes each at most: the server takes a kilobyte where events are too many

export class Outbox {
  /** Every record of the session this computer has, by number. */
  readonly records = new Map<number, StoredRecord>();
  /** The number of the next record: also how many there are. */
  next = 0;
  refusal: RefusedError | null = null;
  private readonly settings: Settings;
  private readonly queue = new Map<number, StoredRecord>();
  private writing = 0;
  private running = false;
  private closed = false;
  private endPause: () => void = () => {};
  private waiters: (() => void)[] = [];

  private constructor(settings: Settings) {
    this.settings = settings;
  }

  /** The outbox of a session, with what an earlier page left, if the disk still tells; that is sent first. */
  static async open(settings: Settings): Promise<Outbox> {
    const outbox = new Outbox(settings);
    for (const record of await settings.storage.loadRecords(settings.session).catch(() => [])) {
      outbox.records.set(record.seq, record);
      if (!record.sent) outbox.queue.set(record.seq, record);
      outbox.startAt(record.seq + 1);
    }
    void outbox.run();
    return outbox;
  }

  /** Go on counting at `seq`, where the server knows of more records than this computer. */
  startAt(seq: number): void {
    this.next = Math.max(this.next, seq);
  }

  /** Keep a record and send it as soon as it is kept. */
  add(report: Report): NumberedRecord {
    return this.store({ ...report, seq: this.next++ });
  }

  /** Keep and send a record under a number that is already given. */
  private store(numbered: NumberedRecord): NumberedRecord {
    const record: StoredRecord = { ...numbered, session: this.settings.session };
    this.records.set(record.seq, record);
    this.writing += 1;
    void this.writeToStorage(record).then(() => {
      this.writing -= 1;
      this.queue.set(record.seq, record);
      void this.run();
    });
    return numbered;
  }

  /** Resolves also when the disk is full or does not answer: memory still has it, and the server soon. */
  private writeToStorage(...records: StoredRecord[]): Promise<void> {
    return this.settings.storage.storeRecords(records).catch(() => {});
  }

  /** Resolves when the server has everything; rejects when it refused. */
  async waitUntilSent(): Promise<void> {
    while (!this.refusal && (this.writing || this.queue.size || this.running)) {
      await new Promise<void>((resolve) => this.waiters.push(resolve));
    }
    if (this.refusal) throw this.refusal;
  }

  /** Send nothing any more: the participant withdrew. */
  close(): void {
    this.queue.clear();
    this.closed = true;
  }

  /** Send records again that the server says it lacks; one this computer lost too is sent as lost. */
  resend(seqs: number[], lost: Report): void {
    for (const seq of seqs) {
      const record = this.records.get(seq);
      if (record) this.queue.set(seq, record);
      else this.store({ ...lost, seq });
    }
    void this.run();
  }

  /** Try now: the network is back. */
  retryNow(): void {
    this.endPause();
  }

  /**
   * The page is going away: everything the server has not said it has, also what the disk has yet to take. The first
   * request outlives the page; browsers allow no more than that, so the others may not. All stays kept as not sent.
   */
  sendBeforeUnload(): void {
    if (this.refusal || this.closed) return;
    const unsent = new Map([...this.records].filter(([, record]) => !record.sent));
    for (let first = true; unsent.size; first = false) {
      const batch = firstBatch(unsent, MAX_KEEPALIVE_CHARACTERS);
      void this.settings.post(batch, first).catch(() => {});
      batch.forEach(({ seq }) => unsent.delete(seq));
    }
  }

  private async run(): Promise<void> {
    if (this.running || this.refusal || this.closed) return;
    this.running = true;
    let failures = 0;
    let maxRecords = MAX_RECORDS;
    while (this.queue.size && !this.refusal) {
      const batch = firstBatch(this.queue, MAX_CHARACTERS, maxRecords);
      try {
        if (!failures) this.notify("sending");
        await this.markSent(await this.settings.post(batch));
        failures = 0;
      } catch (error) {
        if (!(error instanceof RefusedError)) await this.waitBeforeRetry(++failures);
        else if (!RECORD_REFUSALS.has(error.status)) this.refusal = error;
        else if (batch.length > 1) maxRecords = 1;
        else await this.replace(batch[0]!.seq, error);
      }
    }
    this.running = false;
    this.notify(this.refusal ? "stopped" : "sent");
    this.waiters.splice(0).forEach((resolve) => resolve());
  }

  /**
   * A record the server will never take must not keep the others from arriving, nor the session from its end: an
   * event stands in its place. The record itself stays on this computer, in the file that can be downloaded.
   */
  private async replace(seq: number, error: RefusedError): Promise<void> {
    const { session, refused, ...record } = this.queue.get(seq)!;
    if (refused) {
      this.refusal = error; // not even the event
      return;
    }
    const item = record.kind === "response" ? record.item : null;
    const data = { reason: "refused", kind: record.kind, item, message: error.message.slice(0, MAX_REASON_CHARACTERS) };
    const event: StoredRecord = { kind: "interruption", at_ms: Date.now(), data, seq, session, refused: record };
    this.records.set(seq, event);
    this.queue.set(seq, event);
    await this.writeToStorage(event);
    this.settings.onRefused?.(record);
  }

  private async waitBeforeRetry(failures: number): Promise<void> {
    this.notify("waiting");
    const early = new Promise<void>((resolve) => (this.endPause = resolve));
    await (this.settings.wait ?? backoff)(failures, early);
    this.endPause = () => {};
  }

  private async markSent(stored: number[]): Promise<void> {
    if (!Array.isArray(stored) || !stored.length) throw new Error("The server stored nothing.");
    const records = stored.flatMap((seq) => this.queue.get(seq) ?? []);
    for (const record of records) {
      record.sent = true;
      this.queue.delete(record.seq);
    }
    await this.writeToStorage(...records); // at worst they are sent once more
  }

  private notify(delivery: DeliveryStatus): void {
    this.settings.onDelivery?.(delivery, this.refusal ?? undefined);
  }
}

/** The first of these records, as many as go into one request. */
function firstBatch(records: Map<number, StoredRecord>, maxCharacters: number, maxRecords = MAX_RECORDS): NumberedRecord[] {
  const batch: NumberedRecord[] = [];
  let size = 0;
  for (const { session: _session, sent: _sent, refused: _refused, ...record } of records.values()) {
    size += JSON.stringify(record).length + 1;
    if (batch.length && (size > maxCharacters || batch.length >= maxRecords)) break;
    batch.push(record as NumberedRecord);
  }
  return batch;
}

/** 0.5 s, 1 s, 2 s … 30 s, each shortened by chance, so that not everyone comes back at once. */
export function pause_ms(failures: number, random: number): number {
  return Math.min(30_000, 500 * 2 ** (failures - 1)) * (0.5 + random / 2);
}

const backoff: Wait = (failures, early) =>
  Promise.race([new Promise<void>((resolve) => setTimeout(resolve, pause_ms(failures, Math.random()))), early]);

/** Ask the server until it answers; only a refusal ends it. */
export async function retryUntilReply<Reply>(
  send: () => Promise<Reply>,
  onFailure: () => void = () => {},
  wait: Wait = backoff,
): Promise<Reply> {
  for (let failures = 1; ; failures++) {
    try {
      return await send();
    } catch (error) {
      if (error instanceof RefusedError) throw error;
      onFailure();
      await wait(failures, waitForOnline());
    }
  }
}

function waitForOnline(): Promise<void> {
  return new Promise((resolve) => globalThis.addEventListener?.("online", () => resolve(), { once: true }));
}
