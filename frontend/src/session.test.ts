import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";

import { emptyTabMemory } from "./environment.ts";
import { leaveSession, recordsFile, type SessionEnvironment, Session } from "./session.ts";
import { type StoredRecord, memoryStorage } from "./storage.ts";
import { type Event, type Response, sessionServer, type State, type StudyInfo } from "./wire.ts";

const study = { breaks: { every_trials: 0 }, tries: 3 } as StudyInfo;
const trials = { image: ["a", "a", "a", "a"], block: [0, 0, 0, 0], practice: [] } as unknown as State["trials"];
const state: State = {
  session: "s", participant: "p", status: "active", images: {}, trials, next_seq: 0, next_item: 0, repeat_block: false,
  answered: [], asked_again: [],
};
const stored = { session: "s", token: "t" };
const answer = (seq: number, item: number, flags = ""): StoredRecord =>
  ({ session: "s", kind: "response", seq, item, flags, shown_at_ms: 5 }) as StoredRecord;
const resumed = (seq: number, repeat: number | null): StoredRecord =>
  ({ session: "s", kind: "resumed", seq, at_ms: 6, data: { repeat } });

/** Simulate a page; `reply` returns the body of each reply, or the status of a refusal. Requests are logged. */
function page(context: TestContext, reply: (path: string, body: any) => object | number | Promise<never>) {
  const requests: string[] = [];
  const bodies: any[] = [];
  context.mock.method(globalThis, "fetch", async (path: string, options: RequestInit) => {
    const body = options.body ? JSON.parse(String(options.body)) : null;
    requests.push(`${options.method} ${path}`);
    bodies.push(body);
    const replied = await reply(path, body);
    if (typeof replied === "object") return new globalThis.Response(JSON.stringify(replied));
    return new globalThis.Response(JSON.stringify({ error: "X", message: "no" }), { status: replied });
  });
  globalThis.addEventListener ??= () => {}; // exists only in browsers
  const storage = memoryStorage();
  const environment: SessionEnvironment = { server: sessionServer, storage, tab: emptyTabMemory, storageKey: "w", onDelivery: () => {}, retract: () => {} };
  return { storage, environment, requests, bodies };
}

const storing = (_path: string, body: any) =>
  body?.records ? { stored: body.records.map(({ seq }: { seq: number }) => seq) } : { ...state, token: "t" };

const remainingItems = (session: Session): number[] => {
  const schedule = session.schedule(study);
  const items: number[] = [];
  for (let step = schedule.next(); step.kind !== "end"; step = schedule.next()) {
    if (step.kind !== "trial") continue;
    items.push(step.item);
    schedule.answer({ item: step.item, good: true });
  }
  return items;
};

test("records of an earlier page are sent before the state is requested", async (context) => {
  const { storage, environment, requests } = page(context, storing);
  await storage.storeRecords([answer(0, 0), answer(1, 1)]);
  await Session.resume(stored, environment);
  assert.deepEqual(requests, ["POST records", "GET session"]);
});

test("a refused record does not hide that the session is completed", async (context) => {
  const completed = { ...state, status: "completed" };
  const { storage, environment } = page(context, (path) => (path === "records" ? 409 : completed));
  await storage.storeRecords([answer(0, 0)]);
  assert.equal((await Session.resume(stored, environment))?.state.status, "completed");
});

test("undelivered records of a lost session stay; without any, the session is removed", async (context) => {
  for (const status of [401, 404]) {
    const { storage, environment } = page(context, () => status);
    await storage.storeSession("w", stored);
    await storage.storeRecords([answer(0, 0)]);
    assert.equal(await Session.resume(stored, environment), null);
    assert.deepEqual([await storage.loadSession("w"), (await storage.loadRecords("s")).length], [stored, 1]);
    await storage.storeRecords([{ ...answer(0, 0), sent: true }]);
    assert.equal(await Session.resume(stored, environment), null);
    assert.deepEqual([await storage.loadSession("w"), await storage.loadRecords("s")], [undefined, []]);
    context.mock.restoreAll();
  }
});

test("returning after continuing elsewhere resumes the session and sends the remaining records", async (context) => {
  let token = "elsewhere";
  const { storage, environment, bodies } = page(context, (path, body) => {
    if (path === "sessions") token = "new";
    return token === "new" ? { ...(storing(path, body) as object), token } : 401;
  });
  await storage.storeSession("w", stored);
  await storage.storeRecords([answer(0, 0)]);
  assert.equal(await Session.resume(stored, environment), null);
  const session = await Session.begin({ link: "l" }, environment);
  assert.deepEqual(bodies.at(-2).records.map(({ seq }: { seq: number }) => seq), [0], "sent before the state is requested");
  assert.deepEqual(await storage.loadSession("w"), { session: "s", token: "new" });
  assert.equal(session.outbox.next, 1);
});

test("if a session no longer exists, a new one begins, and the file keeps the undelivered records", async (context) => {
  globalThis.location ??= { pathname: "/s/cats/" } as Location;
  const { storage, environment } = page(context, storing);
  const old = { session: "old", token: "o" };
  await storage.storeSession("w", old);
  await storage.storeRecords([{ ...answer(4, 1), session: "old" }]);
  const session = await Session.begin({}, environment);
  assert.deepEqual(await storage.loadSession("w"), { ...stored, before: { ...old, leaving: "keep" } });
  const listSessions = async () => {
    const { records } = JSON.parse(await (await recordsFile(storage, "w"))!.text());
    return records.map((record: StoredRecord) => record.session);
  };
  session.record("comment", {});
  await session.outbox.waitUntilSent();
  assert.deepEqual(await listSessions(), ["s", "old"]);
  await session.leave("withdraw");
  assert.deepEqual(await storage.loadSession("w"), { ...old, leaving: "keep" }, "the next participant is not asked about it");
  assert.deepEqual(await listSessions(), ["old"]);
});

test("leaving a lost session fails once and is not repeated", async (context) => {
  const { storage, environment } = page(context, () => 401);
  for (const data of ["keep", "withdraw"] as const) {
    await assert.rejects(leaveSession({ ...stored, leaving: data }, environment, data), { status: 401 });
    assert.deepEqual(await storage.loadSession("w"), stored);
  }
});

test("after another tab has continued, this tab continues from there", async (context) => {
  const refusal = { error: "Conflict", reason: "elsewhere", message: "in another tab" };
  const { storage, environment, bodies } = page(context, (path, body) =>
    body?.records?.some(({ seq }: { seq: number }) => seq < 3) ? refusal : storing(path, body));
  const { fetch } = globalThis;
  context.mock.method(globalThis, "fetch", async (path: string, options: RequestInit) => {
    const reply = await fetch(path, options);
    const body = (await reply.clone().json()) as object;
    if ("reason" in body) return new globalThis.Response(JSON.stringify(body), { status: 409 });
    return "status" in body ? new globalThis.Response(JSON.stringify({ ...body, next_seq: 3, answered: [0, 1] })) : reply;
  });
  await storage.storeRecords([answer(2, 2)]);
  const session = (await Session.resume(stored, environment))!;
  assert.deepEqual(remainingItems(session), [2, 3], "items that this tab could not deliver are asked again");
  session.record("comment", {});
  await session.outbox.waitUntilSent();
  assert.equal(bodies.at(-1).records[0].seq, 3);
});

test("the entry ID is stored before it is sent and stays the same until the session is over", async (context) => {
  const { storage, environment, bodies } = page(context, storing);
  const first = await Session.begin({ link: "l" }, environment);
  const { entry } = bodies[0];
  assert.match(entry, /^[0-9a-f]{32}$/, "128 bits");
  assert.equal(await storage.loadEntry("w"), entry);
  await Session.begin({ link: "l" }, environment);
  assert.equal(bodies[1].entry, entry);
  await first.leave("withdraw");
  await Session.begin({ link: "l" }, environment);
  assert.notEqual(bodies.at(-1).entry, entry);
});

test("the decision to leave is stored before it is sent, and completed by the next page", async (context) => {
  const { storage, environment, requests, bodies } = page(context, (path, body) => {
    if (path !== "leave") return storing(path, body);
    return requests.filter((each) => each === "POST leave").length > 1 ? {} : new Promise<never>(() => {});
  });
  await storage.storeSession("w", stored);
  await storage.storeRecords([answer(0, 0)]);
  void leaveSession(stored, environment, "keep"); // a page that is closed while it waits
  while (!requests.includes("POST leave")) await new Promise((resolve) => setImmediate(resolve));
  const left = (await storage.loadSession("w"))!;
  assert.equal(left.leaving, "keep");
  await leaveSession(left, environment, left.leaving!);
  assert.deepEqual(bodies.at(-1), { data: "keep" });
  assert.deepEqual([await storage.loadSession("w"), await storage.loadRecords("s")], [undefined, []]);
  const lefts = bodies.flatMap((body) => body.records ?? []).filter(({ kind }: Event) => kind === "left");
  assert.equal(lefts.length, 1);
});

test("after withdrawing, nothing more is sent", async (context) => {
  const { storage, environment, requests } = page(context, () => ({}));
  await storage.storeRecords([answer(0, 0)]);
  await leaveSession(stored, environment, "withdraw");
  assert.deepEqual(requests, ["POST leave"]);
});

test("the server knows the open items; attempts are counted on this computer", async (context) => {
  const now = { ...state, answered: [0], asked_again: [1], next_seq: 4 };
  const { storage, environment } = page(context, (path, body) => (path === "session" ? now : storing(path, body)));
  await storage.storeRecords([answer(0, 0), answer(1, 1, "late"), answer(2, 1, "late")]);
  const session = (await Session.resume(stored, environment))!;
  assert.deepEqual(remainingItems(session), [2, 3, 1]);
  const schedule = session.schedule(study);
  for (const item of [2, 3, 1]) schedule.answer({ item, good: item !== 1 });
  assert.equal(schedule.next().kind, "end", "two attempts before, one now");
});

test("an item that the server wants is asked, whatever was flagged and refused here", async (context) => {
  const now = { ...state, answered: [0, 2, 3], asked_again: [1], next_seq: 9 };
  const { storage, environment } = page(context, (path, body) => (path === "session" ? now : storing(path, body)));
  const late = answer(0, 1, "late");
  const refused = { ...late, kind: "interruption", at_ms: 6, data: {}, refused: late } as unknown as StoredRecord;
  const cases = [[late, late, refused], [late, refused, refused], [late, late, late, late]];
  for (const records of cases) {
    await storage.clear("w", "s");
    await storage.storeRecords(records.map((record, seq) => ({ ...record, seq, sent: true })));
    assert.deepEqual(remainingItems((await Session.resume(stored, environment))!), [1]);
  }
});

test("a repeated block is asked completely, and recorded before its first answer", async (context) => {
  const now = { ...state, repeat_block: true, next_seq: 2 };
  const { storage, environment, bodies } = page(context, (path, body) => (path === "session" ? now : storing(path, body)));
  await storage.storeRecords([answer(0, 0), answer(1, 1, "late")]);
  const session = (await Session.resume(stored, environment))!;
  session.recordReturn();
  await session.outbox.waitUntilSent();
  assert.equal(bodies.at(-1).records[0].data.repeat, 0);
  assert.deepEqual(remainingItems(session), [0, 1, 2, 3]);
});

test("attempts before the repetition of a block no longer count", async (context) => {
  const now = { ...state, answered: [0], asked_again: [1], next_seq: 5 };
  const { storage, environment } = page(context, (path, body) => (path === "session" ? now : storing(path, body)));
  const records = [answer(0, 1, "late"), answer(1, 1, "late"), resumed(2, 0), answer(3, 0), answer(4, 1, "late")];
  await storage.storeRecords(records);
  const schedule = (await Session.resume(stored, environment))!.schedule(study);
  const flagged = [2, 3, 1, 1].map((item) => {
    for (let step = schedule.next(); step.kind !== "trial"; step = schedule.next());
    schedule.answer({ item, good: item !== 1 });
    return schedule.next().kind;
  });
  assert.equal(flagged.at(-1), "end", "one attempt since the repetition, two now");
  assert.notEqual(flagged.at(-2), "end");
});

test("a refused answer is reported, and asked again after a reload", async (context) => {
  const bad = ({ records }: { records: Response[] }) => records.some(({ kind }) => kind === "response");
  const { environment } = page(context, (path, body) => (path === "records" && bad(body) ? 422 : storing(path, body)));
  const retracted: number[] = [];
  const session = await Session.begin({}, { ...environment, retract: (item) => void retracted.push(item) });
  session.outbox.add(answer(0, 2));
  await session.outbox.waitUntilSent();
  assert.deepEqual(retracted, [2]);
  const again = (await Session.resume(stored, environment))!;
  assert.deepEqual(remainingItems(again), [0, 1, 3, 2]);
});

test("choices and stops come with the session and with every reply", async (context) => {
  const choice = (item: number) => ({ item: [item], x1: [1], y1: [2], x2: [3], y2: [4] });
  const { environment } = page(context, (path, body) =>
    path === "records"
      ? { ...(storing(path, body) as object), choices: choice(3), stops: [3] }
      : { ...state, token: "t", choices: choice(2), stops: [] });
  const session = await Session.begin({}, environment);
  const columns = { ...trials, x1: [0, 0, 0, 0], y1: [0, 0, 0, 0], x2: [0, 0, 0, 0], y2: [0, 0, 0, 0] };
  session.outbox.add({ kind: "response", item: 0 } as Response);
  await session.outbox.waitUntilSent();
  assert.deepEqual([1, 2, 3].map((item) => session.choices.getPair(item, columns).chosen), [false, true, true]);
  assert.deepEqual([...session.choices.stops], [3]);
});

test("a disk that cannot be cleared does not hide the completion code", async (context) => {
  const completed = { completion_code: "THANKS42", return_url: null };
  const { storage, environment } = page(context, (path, body) => (path === "complete" ? completed : storing(path, body)));
  storage.clear = () => Promise.reject(new Error("QuotaExceededError"));
  const session = await Session.begin({}, environment);
  assert.deepEqual(await session.complete(), completed);
});

test("the share of right practice answers counts the last answer to each practice trial", async (context) => {
  const practised = { ...state, trials: { ...trials, practice: [true, true, true, false], answer: [true, false, true, null] } };
  const { storage, environment } = page(context, (_path, body) =>
    body?.records ? storing("records", body) : { ...practised, token: "t" });
  assert.equal((await Session.resume(stored, environment))?.practiceShare(), null);
  const same = (seq: number, item: number): StoredRecord => ({ ...answer(seq, item), same: true }) as StoredRecord;
  const different = (seq: number, item: number): StoredRecord => ({ ...answer(seq, item), same: false }) as StoredRecord;
  await storage.storeRecords([different(0, 0), same(1, 1), same(2, 2), same(3, 3)]);
  assert.equal((await Session.resume(stored, environment))?.practiceShare(), 1 / 3);
  await storage.storeRecords([same(4, 0)]);
  assert.equal((await Session.resume(stored, environment))?.practiceShare(), 2 / 3);
});
