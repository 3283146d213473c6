import assert from "node:assert/strict";
import { test } from "node:test";

import { tabMemory, createPreview } from "./environment.ts";
import { Session } from "./session.ts";
import type { Event } from "./wire.ts";

const state = {
  session: "s", participant: "p", status: "active", images: {}, next_seq: 0, next_item: 0, repeat_block: false,
  trials: { image: ["a"], block: [0], practice: [], catch: [] }, answered: [], asked_again: [], token: "",
};

test("a rehearsal asks the server for trials once, and for nothing else", async (context) => {
  const asked: string[] = [];
  context.mock.method(globalThis, "fetch", async (path: string, { method }: RequestInit) => {
    asked.push(`${method} ${path}`);
    return new Response(JSON.stringify(state));
  });
  globalThis.addEventListener ??= () => {}; // a page's own
  const environment = createPreview("cats");
  await environment.enter("w", () => assert.fail("no other tab matters"));
  const place = { ...environment, who: "w", watch: () => {}, retract: () => {} };
  const session = await Session.begin({}, place);
  session.record("consent", {});
  session.record("comment", { text: "!" });
  await session.outbox.waitUntilSent();
  assert.equal(session.found<Event["data"]>("comment")!["text"], "!");
  assert.deepEqual(await session.complete(), { completion_code: null, return_url: null });
  await session.leave("withdraw");
  assert.deepEqual(asked, ["GET ../../api/studies/cats/preview"]);
  environment.tab.setItem("here", "s");
  assert.equal(environment.tab.getItem("here"), null);
});

test("a tab whose browser keeps nothing remembers nothing, and says no word", (context) => {
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

test("whoever is not logged in is told so", async (context) => {
  context.mock.method(globalThis, "fetch", async () => new Response('{"error":"NotAllowed"}', { status: 401 }));
  await assert.rejects(createPreview("cats").enter("w", () => {}), { reason: "log_in" });
});
