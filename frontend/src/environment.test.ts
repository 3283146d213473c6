import assert from "node:assert/strict";
import { test } from "node:test";

import { tabMemory, createPreviewEnvironment } from "./environment.ts";
import { Session } from "./session.ts";
import type { Event } from "./wire.ts";

const state = {
  session: "s", participant: "p", status: "active", images: {}, next_seq: 0, next_item: 0, repeat_block: false,
  trials: { image: ["a"], block: [0], practice: [] }, answered: [], asked_again: [], token: "",
};

test("a preview requests trials once, and nothing else", async (context) => {
  const requests: string[] = [];
  context.mock.method(globalThis, "fetch", async (path: string, { method }: RequestInit) => {
    requests.push(`${method} ${path}`);
    return new Response(JSON.stringify(state));
  });
  globalThis.addEventListener ??= () => {}; // exists only in browsers
  const environment = createPreviewEnvironment("cats");
  await environment.enter("w", () => assert.fail("a preview does not wait for other tabs"));
  const sessionEnvironment = { ...environment, storageKey: "w", onDelivery: () => {}, retract: () => {} };
  const session = await Session.begin({}, sessionEnvironment);
  session.record("consent", {});
  session.record("comment", { text: "!" });
  await session.outbox.waitUntilSent();
  assert.equal(session.lastEvent<Event["data"]>("comment")!["text"], "!");
  assert.deepEqual(await session.complete(), { completion_code: null, return_url: null });
  await session.leave("withdraw");
  assert.deepEqual(requests, ["GET ../../api/studies/cats/preview"]);
  environment.tab.setItem("here", "s");
  assert.equal(environment.tab.getItem("here"), null);
});

test("tab memory never throws if session storage is blocked or full", (context) => {
  const denied = () => { throw new DOMException("Access is denied for this document.", "SecurityError"); };
  const before = Object.getOwnPropertyDescriptor(globalThis, "sessionStorage");
  context.after(() => before && Object.defineProperty(globalThis, "sessionStorage", before));
  Object.defineProperty(globalThis, "sessionStorage", { get: denied, configurable: true });
  tabMemory.setItem("a", "b");
  assert.equal(tabMemory.getItem("a"), null);
  const full = { getItem: () => "b", setItem: denied };
  Object.defineProperty(globalThis, "sessionStorage", { value: full, configurable: true });
  tabMemory.setItem("a", "c");
  assert.equal(tabMemory.getItem("a"), "b");
});

test("a preview without login is refused with the reason log_in", async (context) => {
  context.mock.method(globalThis, "fetch", async () => new Response('{"error":"NotAllowed"}', { status: 401 }));
  await assert.rejects(createPreviewEnvironment("cats").enter("w", () => {}), { reason: "log_in" });
});
