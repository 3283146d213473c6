/**
 * A queue that loses no record: each record is written to the browser's storage before it is sent, and sent again until
 * the server confirms it. `add` returns at once.
 */

import type { StoredRecord, BrowserStorage } from "./storage.ts";
import { type NumberedRecord, RefusedError, type Report } from "./wire.ts";

/**
 * `waiting`: the server cannot be reached, another attempt follows. `stopped`: the server refused; all records stay
 * here.
 */
export type DeliveryStatus = "sent" | "sending" | "waiting" | "stopped";

/** Send records and resolve with the numbers of those stored. `last`: the page is being unloaded. */
export type Post = (records: NumberedRecord[], last?: boolean) => Promise<number[]>;

export interface Settings {
  storage: BrowserStorage;
  session: string;
  post: Post;
  onDelivery?: (delivery: DeliveryStatus, refusal?: RefusedError) => void;
  /** Called for each record that the server refuses permanently. */
  onRefused?: (record: NumberedRecord) => void;
  wait?: Wait;
}

/** Resolve after the pause that follows the `failures`-th failure, or when `early` resolves. */
export type Wait = (failures: number, early: Promise<void>) => Promise<void>;

const RECORD_REFUSALS = new Set([413, 422]); // statuses that concern one record, not the session
const MAX_RECORDS = 100; // per request
const MAX_CHARACTERS = 200_000; // per request; the server accepts 256 kB
const MAX_KEEPALIVE_CHARACTERS = 60_000; // browsers allow 64 kB in a request that outlives the page
const MAX_REASON_CHARACTERS = 150; // at most six bytes each: a stand-in event may have 1 kB

export class Outbox {
  /** All records of the session on this computer, by number. */
  readonly records = new Map<number, StoredRecord>();
  /** The number of the next record, which is also the number of records so far. */
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

  /** Open the outbox of a session. Records that an earlier page could not send are sent first. */
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

  /** Continue numbering at `seq` if the server has more records than this computer. */
  startAt(seq: number): void {
    this.next = Math.max(this.next, seq);
  }

  /** Store a record and queue it for sending. */
  add(report: Report): NumberedRecord {
    return this.store({ ...report, seq: this.next++ });
  }

  /** Store and queue a record that already has a number. */
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

  /** Write records to the browser's storage. Never rejects: if the disk fails, the records are still in memory. */
  private writeToStorage(...records: StoredRecord[]): Promise<void> {
    return this.settings.storage.storeRecords(records).catch(() => {});
  }

  /** Resolve when the server has all records; reject if it refused. */
  async waitUntilSent(): Promise<void> {
    while (!this.refusal && (this.writing || this.queue.size || this.running)) {
      await new Promise<void>((resolve) => this.waiters.push(resolve));
    }
    if (this.refusal) throw this.refusal;
  }

  /** Stop sending, because the participant withdrew. */
  close(): void {
    this.queue.clear();
    this.closed = true;
  }

  /**
   * Send the records again that the server is missing; send `lost` in place of those this computer does not have
   * either.
   */
  resend(seqs: number[], lost: Report): void {
    for (const seq of seqs) {
      const record = this.records.get(seq);
      if (record) this.queue.set(seq, record);
      else this.store({ ...lost, seq });
    }
    void this.run();
  }

  /** Retry now, because the network is back. */
  retryNow(): void {
    this.endPause();
  }

  /**
   * Send everything the server has not confirmed, because the page is being unloaded. Only the first request is sure to
   * outlive the page, since browsers limit the total size. All records stay marked as unsent.
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
   * Replace a record that the server refuses permanently by an event, so that the other records can be sent and the
   * session can end. The record stays on this computer, in the file that can be downloaded.
   */
  private async replace(seq: number, error: RefusedError): Promise<void> {
    const { session, refused, ...record } = this.queue.get(seq)!;
    if (refused) {
      this.refusal = error; // the server refused the event as well
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
    if (!Array.isArray(stored) || !stored.length) {
      throw new Error("Expected the numbers of the stored records, got none.");
    }
    const records = stored.flatMap((seq) => this.queue.get(seq) ?? []);
    for (const record of records) {
      record.sent = true;
      this.queue.delete(record.seq);
    }
    await this.writeToStorage(...records); // if this fails, they are sent once more
  }

  private notify(delivery: DeliveryStatus): void {
    this.settings.onDelivery?.(delivery, this.refusal ?? undefined);
  }
}

/** Return the first records, as many as fit into one request. */
function firstBatch(
  records: Map<number, StoredRecord>,
  maxCharacters: number,
  maxRecords = MAX_RECORDS,
): NumberedRecord[] {
  const batch: NumberedRecord[] = [];
  let size = 0;
  for (const { session: _session, sent: _sent, refused: _refused, ...record } of records.values()) {
    size += JSON.stringify(record).length + 1;
    if (batch.length && (size > maxCharacters || batch.length >= maxRecords)) break;
    batch.push(record as NumberedRecord);
  }
  return batch;
}

/**
 * Return the pause before a retry: 0.5 s, 1 s, 2 s … 30 s, shortened at random so that not all clients retry at once.
 */
export function pause_ms(failures: number, random: number): number {
  return Math.min(30_000, 500 * 2 ** (failures - 1)) * (0.5 + random / 2);
}

const backoff: Wait = (failures, early) =>
  Promise.race([new Promise<void>((resolve) => setTimeout(resolve, pause_ms(failures, Math.random()))), early]);

/** Repeat a request until the server replies; reject only if it refuses. */
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
