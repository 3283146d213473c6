import assert from "node:assert/strict";
import { test } from "node:test";

import { type DeliveryStatus, Outbox, pause_ms, retryUntilReply, type Post, type Wait } from "./outbox.ts";
import { indexedDbStorage, memoryStorage } from "./storage.ts";
import { type Event, type NumberedRecord, RefusedError, type Report } from "./wire.ts";

const event = (note: string): Event => ({ kind: "comment", at_ms: 0, data: { note } });
const noWait: Wait = async () => {};

/** Simulate a server that stores records by number; `trouble` may return an error for a request. */
function server(trouble: (batch: NumberedRecord[], request: number) => Error | null = () => null) {
  const stored = new Map<number, NumberedRecord>();
  const requests: NumberedRecord[][] = [];
  const post: Post = async (batch) => {
    requests.push(batch);
    const error = trouble(batch, requests.length);
    if (error) throw error;
    for (const record of batch) if (!stored.has(record.seq)) stored.set(record.seq, record);
    return batch.map(({ seq }) => seq);
  };
  return { stored, requests, post };
}

const refusal = (status: number) => new RefusedError(status, { error: "X", message: "no" });

test("a record is stored before it is sent", async () => {
  const storage = memoryStorage();
  const storedNumbers: number[] = [];
  const post: Post = async (batch) => {
    storedNumbers.push(...(await storage.loadRecords("s")).map(({ seq }) => seq));
    return batch.map(({ seq }) => seq);
  };
  const outbox = await Outbox.open({ storage, session: "s", post });
  outbox.add(event("a"));
  await outbox.waitUntilSent();
  assert.deepEqual(storedNumbers, [0]);
});

test("records are numbered from 0 without gaps, and add does not wait", async () => {
  const { stored, post } = server();
  const outbox = await Outbox.open({ storage: memoryStorage(), session: "s", post });
  const numbers = ["a", "b", "c"].map((note) => outbox.add(event(note)).seq);
  assert.deepEqual(numbers, [0, 1, 2]);
  assert.equal(stored.size, 0);
  await outbox.waitUntilSent();
  assert.deepEqual([...stored.keys()], [0, 1, 2]);
  assert.equal("session" in stored.get(0)!, false);
});

test("a thousand network failures lose no record", async () => {
  const { stored, post } = server((_batch, request) => (request <= 1000 ? new TypeError("offline") : null));
  const statuses = new Set<DeliveryStatus>();
  const onDelivery = (delivery: DeliveryStatus) => void statuses.add(delivery);
  const outbox = await Outbox.open({ storage: memoryStorage(), session: "s", post, wait: noWait, onDelivery });
  for (let count = 0; count < 250; count++) outbox.add(event(String(count)));
  await outbox.waitUntilSent();
  assert.equal(stored.size, 250);
  assert.deepEqual([...statuses].sort(), ["sending", "sent", "waiting"]);
});

test("a request has at most 100 records and 256 kB", async () => {
  const { requests, post } = server((_batch, request) => (request === 1 ? new TypeError("offline") : null));
  const outbox = await Outbox.open({ storage: memoryStorage(), session: "s", post, wait: noWait });
  for (let count = 0; count < 150; count++) outbox.add(event("x"));
  for (let count = 0; count < 10; count++) outbox.add(event("x".repeat(60_000)));
  await outbox.waitUntilSent();
  for (const batch of requests) {
    assert.ok(batch.length <= 100);
    assert.ok(JSON.stringify({ records: batch }).length < 256_000);
  }
});

test("after a reload, unsent records are sent and numbering continues", async () => {
  const storage = memoryStorage();
  const never: Wait = () => new Promise(() => {});
  const dead = await Outbox.open({
    storage, session: "s", post: () => Promise.reject(new TypeError("offline")), wait: never,
  });
  dead.add(event("a"));
  dead.add(event("b"));
  await new Promise((resolve) => setImmediate(resolve));
  const { stored, post } = server();
  const outbox = await Outbox.open({ storage, session: "s", post });
  assert.equal(outbox.add(event("c")).seq, 2);
  await outbox.waitUntilSent();
  assert.deepEqual([...stored.keys()], [0, 1, 2]);
  const third = server();
  await (await Outbox.open({ storage, session: "s", post: third.post })).waitUntilSent();
  assert.deepEqual(third.requests, [], "confirmed records are not sent again");
});

test("records of another session are not sent", async () => {
  const storage = memoryStorage();
  await storage.storeRecords([{ ...event("a"), seq: 0, session: "other" }]);
  const { requests, post } = server();
  const outbox = await Outbox.open({ storage, session: "s", post });
  await outbox.waitUntilSent();
  assert.deepEqual([requests.length, outbox.next], [0, 0]);
});

for (const status of [401, 409]) {
  test(`status ${status} stops sending, is reported, and all records stay in storage`, async () => {
    const storage = memoryStorage();
    const { post, requests } = server(() => refusal(status));
    const statuses: [DeliveryStatus, number | undefined][] = [];
    const onDelivery = (delivery: DeliveryStatus, refusal?: RefusedError) => void statuses.push([delivery, refusal?.status]);
    const outbox = await Outbox.open({ storage, session: "s", post, onDelivery, wait: noWait });
    outbox.add(event("a"));
    await assert.rejects(outbox.waitUntilSent(), RefusedError);
    outbox.add(event("b"));
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(requests.length, 1);
    assert.deepEqual(statuses.at(-1), ["stopped", status]);
    assert.deepEqual((await storage.loadRecords("s")).map(({ seq, sent }) => [seq, sent]), [[0, undefined], [1, undefined]]);
  });
}

test("a refused record is replaced by an event, stays in storage, and is reported", async () => {
  const bad = (batch: NumberedRecord[]) => (batch.some(({ seq, kind }) => seq === 2 && kind === "comment") ? refusal(422) : null);
  const { stored, post } = server((batch, request) => (request === 1 ? new TypeError("offline") : bad(batch)));
  const storage = memoryStorage();
  const refused: NumberedRecord[] = [];
  const onRefused = (record: NumberedRecord) => void refused.push(record);
  const outbox = await Outbox.open({ storage, session: "s", post, wait: noWait, onRefused });
  for (let count = 0; count < 5; count++) outbox.add(event(String(count)));
  await outbox.waitUntilSent();
  assert.deepEqual([...stored.keys()].sort(), [0, 1, 2, 3, 4]);
  const { at_ms: _at, ...replacement } = stored.get(2)! as Event & { seq: number };
  const data = { reason: "refused", kind: "comment", item: null, message: "no" };
  assert.deepEqual(replacement, { seq: 2, kind: "interruption", data });
  assert.deepEqual(refused, [{ ...event("2"), seq: 2 }]);
  const kept = (await storage.loadRecords("s")).find(({ seq }) => seq === 2)!;
  assert.deepEqual([kept.sent, kept.refused], [true, { ...event("2"), seq: 2 }]);
});

test("a server that accepts no more events gets all responses, and a small event for each refused one", async () => {
  const long = new RefusedError(422, { error: "X", message: "\u4e0d".repeat(5000) });
  const { stored, post } = server((batch) => (batch.some(({ kind }) => kind === "comment") ? long : null));
  const outbox = await Outbox.open({ storage: memoryStorage(), session: "s", post, wait: noWait });
  const answer = { kind: "response", item: 0 } as unknown as Report;
  for (const report of [event("a"), answer, event("b"), answer]) outbox.add(report);
  await outbox.waitUntilSent();
  const kinds = [...stored.values()].sort((one, other) => one.seq - other.seq).map(({ kind }) => kind);
  assert.deepEqual(kinds, ["interruption", "response", "interruption", "response"]);
  for (const record of stored.values()) {
    if (record.kind !== "interruption") continue;
    const asPythonWrites = JSON.stringify(record.data).replace(/[^\x00-\x7f]/g, "\\u0000");
    assert.ok(asPythonWrites.length <= 1000, "MAX_STAND_IN_BYTES of store/conflicts.py");
  }
});

test("sending stops if the server refuses the replacement event as well", async () => {
  const { post } = server(() => refusal(422));
  const outbox = await Outbox.open({ storage: memoryStorage(), session: "s", post, wait: noWait });
  outbox.add(event("a"));
  await assert.rejects(outbox.waitUntilSent(), { status: 422 });
});

test("a reply without stored numbers counts as a failure", async () => {
  let requests = 0;
  const post: Post = async (batch) => (++requests < 3 ? [] : batch.map(({ seq }) => seq));
  const outbox = await Outbox.open({ storage: memoryStorage(), session: "s", post, wait: noWait });
  outbox.add(event("a"));
  await outbox.waitUntilSent();
  assert.equal(requests, 3);
});

test("missing records are sent again; records this computer lost are sent as lost", async () => {
  const { stored, post } = server();
  const outbox = await Outbox.open({ storage: memoryStorage(), session: "s", post });
  outbox.startAt(1);
  outbox.add(event("b"));
  await outbox.waitUntilSent();
  stored.clear();
  outbox.resend([0, 1], { kind: "interruption", at_ms: 0, data: { reason: "lost" } });
  await outbox.waitUntilSent();
  assert.equal(stored.get(0)!.kind, "interruption");
  assert.equal(stored.get(1)!.kind, "comment");
});

test("unloading the page sends all records, and the request that outlives it is small enough", async () => {
  const lasts: [NumberedRecord[], boolean | undefined][] = [];
  const post: Post = async (batch, last) => {
    if (last !== undefined) lasts.push([batch, last]);
    throw new TypeError("offline");
  };
  const never: Wait = () => new Promise(() => {});
  const outbox = await Outbox.open({ storage: memoryStorage(), session: "s", post, wait: never });
  for (let count = 0; count < 20; count++) outbox.add(event("x".repeat(10_000)));
  await new Promise((resolve) => setImmediate(resolve));
  outbox.sendBeforeUnload();
  assert.deepEqual(lasts.map(([, last]) => last), [true, false, false, false]);
  for (const [batch] of lasts) assert.ok(JSON.stringify(batch).length < 64_000);
  const seqs = lasts.flatMap(([batch]) => batch.map(({ seq }) => seq));
  assert.deepEqual(seqs, Array.from({ length: 20 }, (_, seq) => seq));
});

test("unloading the page also sends records not yet written to the disk", async () => {
  const { stored, post } = server();
  const storage = { ...memoryStorage(), storeRecords: () => new Promise<void>(() => {}) };
  const outbox = await Outbox.open({ storage, session: "s", post });
  outbox.add(event("a"));
  outbox.sendBeforeUnload();
  assert.deepEqual([...stored.keys()], [0]);
});

test("unloading the page does not repeat confirmed records", async () => {
  const { requests, post } = server();
  const outbox = await Outbox.open({ storage: memoryStorage(), session: "s", post });
  outbox.add(event("a"));
  await outbox.waitUntilSent();
  outbox.sendBeforeUnload();
  assert.equal(requests.length, 1);
});

test("retryNow ends the pause", async () => {
  const { stored, post } = server((_batch, request) => (request === 1 ? new TypeError("offline") : null));
  const waitForEarly: Wait = (_failures, early) => early;
  const outbox = await Outbox.open({ storage: memoryStorage(), session: "s", post, wait: waitForEarly });
  outbox.add(event("a"));
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(stored.size, 0);
  outbox.retryNow();
  await outbox.waitUntilSent();
  assert.equal(stored.size, 1);
});

test("a full disk does not prevent sending", async () => {
  const { stored, post } = server();
  const storage = { ...memoryStorage(), storeRecords: () => Promise.reject(new Error("QuotaExceededError")) };
  const outbox = await Outbox.open({ storage, session: "s", post });
  outbox.add(event("a"));
  await outbox.waitUntilSent();
  assert.equal(stored.size, 1);
});

test("pauses grow from half a second to half a minute and are shortened at random", () => {
  const longest = [1, 2, 3, 4, 5, 6, 7, 8, 100].map((failures) => pause_ms(failures, 1));
  assert.deepEqual(longest, [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
  assert.equal(pause_ms(1, 0), 250);
  assert.equal(pause_ms(2000, 0), 15_000);
});

test("retryUntilReply repeats a request until it succeeds or is refused", async () => {
  let tries = 0;
  const answer = await retryUntilReply(async () => {
    if (++tries < 50) throw new TypeError("offline");
    return "yes";
  }, () => {}, noWait);
  assert.deepEqual([answer, tries], ["yes", 50]);
  await assert.rejects(retryUntilReply(() => Promise.reject(refusal(409)), () => {}, noWait), RefusedError);
});

test("a disk that never responds does not prevent sending", async () => {
  const { stored, post } = server();
  const dead = { transaction: () => ({ objectStore: () => ({ put: () => ({}), getAll: () => ({}) }) }) };
  globalThis.IDBKeyRange ??= { bound: () => ({}) } as unknown as typeof IDBKeyRange;
  const storage = indexedDbStorage(dead as unknown as IDBDatabase, 0);
  const outbox = await Outbox.open({ storage, session: "s", post });
  outbox.add(event("a"));
  await outbox.waitUntilSent();
  assert.deepEqual([...stored.keys()], [0]);
});
