import assert from "node:assert/strict";
import { test } from "node:test";

import { indexedDbStorage, withTimeout } from "./storage.ts";

/** A database that never responds. */
const dead = {
  transaction: () => ({
    objectStore: () => ({ get: () => ({}), getAll: () => ({}), put: () => ({}), delete: () => ({}) }),
  }),
} as unknown as IDBDatabase;
globalThis.IDBKeyRange ??= { bound: () => ({}) } as unknown as typeof IDBKeyRange;

test("all reads and writes time out if the disk never responds", async () => {
  const storage = indexedDbStorage(dead, 0);
  const operations = [
    storage.loadEntry("a"), storage.storeEntry("a", "b"), storage.loadSession("a"), storage.storeSession("a", { session: "s", token: "t" }),
    storage.loadRecords("s"), storage.storeRecords([]), storage.clear("a", "s"),
  ];
  for (const each of await Promise.allSettled(operations)) assert.equal(each.status, "rejected");
});

test("a closed database rejects and does not throw", async () => {
  const closed = { transaction: () => { throw new Error("InvalidStateError"); } } as unknown as IDBDatabase;
  await assert.rejects(indexedDbStorage(closed).loadEntry("a"), /InvalidStateError/);
  await assert.rejects(indexedDbStorage(closed).storeEntry("a", "b"), /InvalidStateError/);
});

test("withTimeout passes on values and errors that arrive in time", async () => {
  assert.equal(await withTimeout(Promise.resolve(7), 1000), 7);
  await assert.rejects(withTimeout(Promise.reject(new Error("its own")), 1000), /its own/);
});
