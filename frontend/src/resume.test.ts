import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";

import { type Asking, findSession, claimTab } from "./resume.ts";
import { type Place, Session } from "./session.ts";
import { type StoredRecord, memoryStorage } from "./storage.ts";
import { type NumberedRecord, Refused, type Server, type State } from "./wire.ts";

const trials = { image: ["a"], block: [0], practice: [], catch: [] } as unknown as State["trials"];
const state: State = {
  session: "s", participant: "p", status: "active", images: {}, trials, next_seq: 0, next_item: 0, repeat_block: false,
  answered: [], asked_again: [],
};
const kept = { session: "s", token: "t" };
const unsent = () => ({ session: "s", kind: "response", seq: 0, item: 0, flags: "", shown_at_ms: 5 }) as StoredRecord;
const all: Server = {
  begin: async () => ({ ...state, session: "new", token: "n" }),
  state: async () => state,
  complete: async () => ({ completion_code: null, return_url: null }),
  leave: async () => ({}),
  records: async (_token, records) => ({ stored: records.map(({ seq }) => seq) }),
};
const no = (status: number, said: object) => async () => { throw new Refused(status, said); };
const LOST = no(401, { error: "NotAllowed" });
const GONE = no(404, { error: "NotFound" });

/** A computer with someone's session and an answer that was never sent, before a server that answers in its own way. */
async function computer(own: Partial<Server> = {}) {
  globalThis.addEventListener ??= () => {}; // a page's own, as the next
  globalThis.document ??= { body: { dataset: {} } } as unknown as Document;
  const tab = new Map<string, string>();
  const calls: string[] = [];
  const server = { ...all, ...own };
  const put = <Name extends keyof Server>(name: Name) =>
    ((...given: unknown[]) => (calls.push(name), (server[name] as (...all: unknown[]) => unknown)(...given))) as Server[Name];
  const noted = Object.fromEntries(Object.keys(server).map((name) => [name, put(name as keyof Server)]));
  const place: Place = {
    server: noted as unknown as Server, storage: memoryStorage(), who: "w", watch: () => {}, retract: () => {},
    tab: { getItem: (key) => tab.get(key) ?? null, setItem: (key, value) => void tab.set(key, value) },
  };
  await place.storage.storeSession("w", kept);
  await place.storage.storeEntry("w", "entry of s");
  await place.storage.storeRecords([unsent()]);
  return { place, storage: place.storage, calls };
}

const asking = (who: "same" | "new", asked: string[] = []): Asking => ({
  returning: async () => (asked.push("returning"), who),
  gone: async () => void asked.push("gone"),
});

test("a link and a tab say who it is; anyone else is asked", async () => {
  for (const how of ["link", "tab", "asked"]) {
    const { place } = await computer();
    if (how === "tab") claimTab(place, "s");
    const asked: string[] = [];
    const found = await findSession(place, how === "link", asking("same", asked));
    assert.equal((found as Session).state.session, "s");
    assert.deepEqual(asked, how === "asked" ? ["returning"] : []);
  }
});

test("someone new: what the other person answered is delivered, then nothing of theirs stays", async () => {
  const { place, storage, calls } = await computer();
  assert.equal(await findSession(place, false, asking("new")), null);
  assert.deepEqual([...new Set(calls)], ["records", "leave"]);
  assert.deepEqual([await storage.session("w"), await storage.entry("w"), await storage.records("s")], [undefined, undefined, []]);
});

test("someone new where the session had ended: nothing of it stays", async () => {
  for (const reason of ["ended", "already"]) {
    const { place, storage } = await computer({ records: no(409, { reason }) });
    assert.equal(await findSession(place, false, asking("new")), null);
    assert.deepEqual([await storage.session("w"), await storage.records("s")], [undefined, []]);
  }
});

test("someone new where the server would not take the answers: they stay, below the newcomer's own", async () => {
  for (const [records, leaves] of [[LOST, false], [GONE, false], [no(409, { reason: "elsewhere" }), true]] as const) {
    const { place, storage, calls } = await computer({ records });
    assert.equal(await findSession(place, false, asking("new")), null);
    assert.equal(calls.includes("leave"), leaves, "whom the server still knows has left");
    assert.notEqual(await storage.entry("w"), "entry of s", "or the newcomer would be taken for them");
    await Session.begin({}, place);
    const lies = { ...kept, leaving: "keep" };
    assert.deepEqual(await storage.session("w"), { session: "new", token: "n", before: lies });
    assert.deepEqual((await storage.records("s"))[0], unsent());
  }
});

test("what was not taken is tried again by the next who comes, who is not asked about it", async () => {
  const sent: NumberedRecord[] = [];
  const { place, storage } = await computer({ records: LOST });
  await findSession(place, false, asking("new"));
  const records: Server["records"] = async (token, given) => (sent.push(...given), all.records(token, given));
  const asked: string[] = [];
  assert.equal(await findSession({ ...place, server: { ...all, records } }, false, asking("new", asked)), null);
  assert.deepEqual(sent.map(({ kind }) => kind), ["response", "left"]);
  assert.deepEqual([asked, await storage.records("s")], [[], []]);
});

test("who withdrew leaves nothing here, also where the session is gone", async () => {
  const { place, storage } = await computer({ leave: GONE });
  await storage.storeSession("w", { ...kept, leaving: "withdraw" });
  assert.equal(await findSession(place, false, asking("new")), null);
  assert.deepEqual([await storage.session("w"), await storage.records("s")], [undefined, []]);
});

test("whose session is lost: with a name they begin where it is now, without one they are told", async () => {
  for (const named of [true, false]) {
    const { place, storage } = await computer({ records: LOST, state: LOST });
    const asked: string[] = [];
    claimTab(place, "s");
    assert.equal(await findSession(place, named, asking("same", asked)), null);
    assert.deepEqual(asked, named ? [] : ["gone"]);
    assert.deepEqual((await storage.records("s"))[0], unsent());
  }
});

/** A disk that answers nothing the first `times` that it is asked for the session. */
function slow(place: Place, times: number): void {
  const { session } = place.storage;
  place.storage.session = (who) => (times-- > 0 ? Promise.reject(new Error("does not answer")) : session(who));
}

test("a disk that is slow once costs nobody their place", async () => {
  const { place } = await computer();
  slow(place, 1);
  assert.equal(((await findSession(place, false, asking("same"))) as Session).state.session, "s");
});

test("a disk that does not answer: a name goes on, a new tab begins anew, one that was here is told", async (context: TestContext) => {
  for (const [named, wasHere] of [[true, false], [true, true], [false, false], [false, true]] as const) {
    await context.test(`named ${named}, was here ${wasHere}`, async () => {
      const { place, storage } = await computer();
      slow(place, 2);
      if (wasHere) claimTab(place, "s");
      const arrived = findSession(place, named, asking("same"));
      if (!named && wasHere) return assert.rejects(arrived, /does not answer/);
      assert.equal(await arrived, null);
      assert.equal((await storage.entry("w")) === "entry of s", named, "nobody is taken for the person before");
      await Session.begin({}, place);
      assert.deepEqual((await storage.session("w"))?.before, { ...kept, leaving: "keep" }, "and nothing of theirs is lost");
    });
  }
});
