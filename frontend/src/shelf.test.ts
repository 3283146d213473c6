import assert from "node:assert/strict";
import { test } from "node:test";

import { indexed, inTime } from "./shelf.ts";

/** A database whose requests are taken and never answered. */
const dead = {
  transaction: () => ({
    objectStore: () => ({ get: () => ({}), getAll: () => ({}), put: () => ({}), delete: () => ({}) }),
  }),
} as unknown as IDBDatabase;
globalThis.IDBKeyRange ??= { bound: () => ({}) } as unknown as typeof IDBKeyRange;

test("a disk that never answers ends every read and write", async () => {
  const shelf = indexed(dead, 0);
  const asked = [
    shelf.entry("a"), shelf.keepEntry("a", "b"), shelf.session("a"), shelf.keepSession("a", { session: "s", token: "t" }),
    shelf.records("s"), shelf.keepRecords([]), shelf.clear("a", "s"),
  ];
  for (const each of await Promise.allSettled(asked)) assert.equal(each.status, "rejected");
});

test("a database that is closed rejects and throws nothing", async () => {
  const closed = { transaction: () => { throw new Error("InvalidStateError"); } } as unknown as IDBDatabase;
  await assert.rejects(indexed(closed).entry("a"), /InvalidStateError/);
  await assert.rejects(indexed(closed).keepEntry("a", "b"), /InvalidStateError/);
});

test("what comes in time comes as it is", async () => {
  assert.equal(await inTime(Promise.resolve(7), 1000), 7);
  await assert.rejects(inTime(Promise.reject(new Error("its own")), 1000), /its own/);
});
