import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";

import { type ResumePrompts, findSession, claimTab } from "./resume.ts";
import { type SessionEnvironment, Session } from "./session.ts";
import { type StoredRecord, memoryStorage } from "./storage.ts";
import { type NumberedRecord, RefusedError, type Server, type State } from "./wire.ts";

const trials = { image: ["a"], block: [0], practice: [] } as unknown as State["trials"];
const state: State = {
  session: "s", participant: "p", status: "active", images: {}, trials, next_seq: 0, next_item: 0, repeat_block: false,
  answered: [], asked_again: [],
};
const stored = { session: "s", token: "t" };
const unsent = () => ({ session: "s", kind: "response", seq: 0, item: 0, flags: "", shown_at_ms: 5 }) as StoredRecord;
const all: Server = {
  begin: async () => ({ ...state, session: "new", token: "n" }),
  state: async () => state,
  complete: async () => ({ completion_code: null, return_url: null }),
  leave: async () => ({}),
  records: async (_token, records) => ({ stored: records.map(({ seq }) => seq) }),
};
const no = (status: number, body: object) => async () => { throw new RefusedError(status, body); };
const LOST = no(401, { error: "NotAllowed" });
const GONE = no(404, { error: "NotFound" });

/** Create an environment with a stored session and an unsent answer; `own` overrides replies of the server. */
async function computer(own: Partial<Server> = {}) {
  globalThis.addEventListener ??= () => {}; // this and the next exist only in browsers
  globalThis.document ??= { body: { dataset: {} } } as unknown as Document;
  const tab = new Map<string, string>();
  const calls: string[] = [];
  const server = { ...all, ...own };
  const logCall = <Name extends keyof Server>(name: Name) =>
    ((...parameters: unknown[]) => (calls.push(name), (server[name] as (...all: unknown[]) => unknown)(...parameters))) as Server[Name];
  const logged = Object.fromEntries(Object.keys(server).map((name) => [name, logCall(name as keyof Server)]));
  const environment: SessionEnvironment = {
    server: logged as unknown as Server, storage: memoryStorage(), storageKey: "w", onDelivery: () => {}, retract: () => {},
    tab: { getItem: (key) => tab.get(key) ?? null, setItem: (key, value) => void tab.set(key, value) },
  };
  await environment.storage.storeSession("w", stored);
  await environment.storage.storeEntry("w", "entry of s");
  await environment.storage.storeRecords([unsent()]);
  return { environment, storage: environment.storage, calls };
}

const createPrompts = (choice: "same" | "new", shownPrompts: string[] = []): ResumePrompts => ({
  returning: async () => (shownPrompts.push("returning"), choice),
  lost: async () => void shownPrompts.push("lost"),
});

test("a link or a tab identifies the participant; anyone else is asked", async () => {
  for (const identifiedBy of ["link", "tab", "prompt"]) {
    const { environment } = await computer();
    if (identifiedBy === "tab") claimTab(environment, "s");
    const shownPrompts: string[] = [];
    const found = await findSession(environment, identifiedBy === "link", createPrompts("same", shownPrompts));
    assert.equal((found as Session).state.session, "s");
    assert.deepEqual(shownPrompts, identifiedBy === "prompt" ? ["returning"] : []);
  }
});

test("for a new participant, the previous one's answers are delivered and then removed", async () => {
  const { environment, storage, calls } = await computer();
  assert.equal(await findSession(environment, false, createPrompts("new")), null);
  assert.deepEqual([...new Set(calls)], ["records", "leave"]);
  assert.deepEqual([await storage.loadSession("w"), await storage.loadEntry("w"), await storage.loadRecords("s")], [undefined, undefined, []]);
});

test("for a new participant, an ended session is removed", async () => {
  for (const reason of ["ended", "already"]) {
    const { environment, storage } = await computer({ records: no(409, { reason }) });
    assert.equal(await findSession(environment, false, createPrompts("new")), null);
    assert.deepEqual([await storage.loadSession("w"), await storage.loadRecords("s")], [undefined, []]);
  }
});

test("for a new participant, refused answers of the previous one stay below the new session", async () => {
  for (const [records, leaves] of [[LOST, false], [GONE, false], [no(409, { reason: "elsewhere" }), true]] as const) {
    const { environment, storage, calls } = await computer({ records });
    assert.equal(await findSession(environment, false, createPrompts("new")), null);
    assert.equal(calls.includes("leave"), leaves, "only a session known to the server is left");
    assert.notEqual(await storage.loadEntry("w"), "entry of s", "the server would take the new participant for the previous one");
    await Session.begin({}, environment);
    const lies = { ...stored, leaving: "keep" };
    assert.deepEqual(await storage.loadSession("w"), { session: "new", token: "n", before: lies });
    assert.deepEqual((await storage.loadRecords("s"))[0], unsent());
  }
});

test("refused answers are sent again on the next visit, without a prompt", async () => {
  const sent: NumberedRecord[] = [];
  const { environment, storage } = await computer({ records: LOST });
  await findSession(environment, false, createPrompts("new"));
  const records: Server["records"] = async (token, added) => (sent.push(...added), all.records(token, added));
  const shownPrompts: string[] = [];
  assert.equal(await findSession({ ...environment, server: { ...all, records } }, false, createPrompts("new", shownPrompts)), null);
  assert.deepEqual(sent.map(({ kind }) => kind), ["response", "left"]);
  assert.deepEqual([shownPrompts, await storage.loadRecords("s")], [[], []]);
});

test("a withdrawn session is removed even if the server does not know it", async () => {
  const { environment, storage } = await computer({ leave: GONE });
  await storage.storeSession("w", { ...stored, leaving: "withdraw" });
  assert.equal(await findSession(environment, false, createPrompts("new")), null);
  assert.deepEqual([await storage.loadSession("w"), await storage.loadRecords("s")], [undefined, []]);
});

test("if the session is lost, named participants begin where it is now, others are told", async () => {
  for (const named of [true, false]) {
    const { environment, storage } = await computer({ records: LOST, state: LOST });
    const shownPrompts: string[] = [];
    claimTab(environment, "s");
    assert.equal(await findSession(environment, named, createPrompts("same", shownPrompts)), null);
    assert.deepEqual(shownPrompts, named ? [] : ["lost"]);
    assert.deepEqual((await storage.loadRecords("s"))[0], unsent());
  }
});

/** Make the first `times` attempts to load the session fail. */
function slow(environment: SessionEnvironment, times: number): void {
  const { loadSession } = environment.storage;
  environment.storage.loadSession = (storageKey) => (times-- > 0 ? Promise.reject(new Error("does not answer")) : loadSession(storageKey));
}

test("a disk that fails once does not lose the session", async () => {
  const { environment } = await computer();
  slow(environment, 1);
  assert.equal(((await findSession(environment, false, createPrompts("same"))) as Session).state.session, "s");
});

test("if the disk fails, named participants and new tabs begin, and a tab with a session rejects", async (context: TestContext) => {
  for (const [named, wasHere] of [[true, false], [true, true], [false, false], [false, true]] as const) {
    await context.test(`named ${named}, was here ${wasHere}`, async () => {
      const { environment, storage } = await computer();
      slow(environment, 2);
      if (wasHere) claimTab(environment, "s");
      const found = findSession(environment, named, createPrompts("same"));
      if (!named && wasHere) return assert.rejects(found, /does not answer/);
      assert.equal(await found, null);
      assert.equal((await storage.loadEntry("w")) === "entry of s", named, "the server must not take a new participant for the previous one");
      await Session.begin({}, environment);
      assert.deepEqual((await storage.loadSession("w"))?.before, { ...stored, leaving: "keep" }, "the previous session is kept");
    });
  }
});
