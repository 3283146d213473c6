import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";

import { waitForOnlyTab, waitByAsking } from "./tabs.ts";

/** A BroadcastChannel as one bus: messages reach all other channels a moment later. */
class Channel {
  static all: Channel[] = [];
  onmessage: ((message: { data: unknown }) => void) | null = null;

  constructor() {
    Channel.all.push(this);
  }

  postMessage(data: unknown): void {
    for (const other of Channel.all) if (other !== this) queueMicrotask(() => other.onmessage?.({ data }));
  }
}

/** Simulate tabs: `open` opens one. `active` lists the tabs that have the study, `busy` those told to wait. */
function setUpTabs(context: TestContext) {
  Channel.all = [];
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const real = globalThis.BroadcastChannel;
  globalThis.BroadcastChannel = Channel as unknown as typeof BroadcastChannel;
  context.after(() => void (globalThis.BroadcastChannel = real));
  const active: string[] = [];
  const busy: string[] = [];
  const open = (tab: string) => void waitByAsking("study", () => busy.push(tab)).then(() => active.push(tab));
  const later = async (ms: number) => {
    await flush();
    context.mock.timers.tick(ms);
    await flush();
  };
  return { active, busy, open, later };
}

const flush = () => new Promise((resolve) => setImmediate(resolve));

test("the first tab has the study, a later one waits", async (context) => {
  const { active, busy, open, later } = setUpTabs(context);
  open("a");
  await later(300);
  open("b");
  await later(300);
  assert.deepEqual([active, busy], [["a"], ["b"]]);
});

test("of two tabs that ask at the same time, exactly one has the study", async (context) => {
  for (const numbers of [[0.2, 0.7], [0.7, 0.2]]) {
    await context.test(String(numbers), async (inner) => {
      const values = [...numbers];
      inner.mock.method(Math, "random", () => values.shift() ?? 0.5);
      const { active, busy, open, later } = setUpTabs(inner);
      open("a");
      open("b");
      await later(300);
      const lower = numbers[0]! < numbers[1]! ? "a" : "b";
      assert.deepEqual([active, busy], [[lower], [lower === "a" ? "b" : "a"]]);
      await later(2000);
      await later(300);
      assert.deepEqual(active, [lower], "the other tab asks again and gets a reply");
    });
  }
});

test("a waiting tab takes over when the other one closes", async (context) => {
  const { active, busy, open, later } = setUpTabs(context);
  open("a");
  await later(300);
  open("b");
  await later(300);
  Channel.all.shift(); // tab a closes
  await later(2000);
  await later(300);
  assert.deepEqual([active, busy], [["a", "b"], ["b"]]);
});

test("tabs ask each other if locks are blocked, and do not wait if channels are blocked too", async (context) => {
  const denied = () => { throw new DOMException("denied", "SecurityError"); };
  const before = Object.getOwnPropertyDescriptor(globalThis, "navigator")!;
  context.after(() => Object.defineProperty(globalThis, "navigator", before));
  Object.defineProperty(globalThis, "navigator", { value: { locks: { request: async () => denied() } }, configurable: true });
  const { later } = setUpTabs(context);
  const events: string[] = [];
  void waitForOnlyTab("study", () => events.push("first is busy")).then(() => events.push("first"));
  await later(300);
  void waitForOnlyTab("study", () => events.push("second is busy"));
  await later(300);
  assert.deepEqual(events, ["first", "second is busy"]);
  globalThis.BroadcastChannel = denied as unknown as typeof BroadcastChannel;
  await waitForOnlyTab("study", () => assert.fail("no other tab is known"));
});
