import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";

import { waitForOnlyTab, waitByAsking } from "./tabs.ts";

/** The browser's channel, as one bus: what one says, the others hear a moment later. */
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

/** Tabs that open in the way `open` says; which of them are alone, and which were told that another is. */
function opening(context: TestContext) {
  Channel.all = [];
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const real = globalThis.BroadcastChannel;
  globalThis.BroadcastChannel = Channel as unknown as typeof BroadcastChannel;
  context.after(() => void (globalThis.BroadcastChannel = real));
  const waitForOnlyTab: string[] = [];
  const busy: string[] = [];
  const open = (tab: string) => void waitByAsking("study", () => busy.push(tab)).then(() => waitForOnlyTab.push(tab));
  const later = async (ms: number) => {
    await heard();
    context.mock.timers.tick(ms);
    await heard();
  };
  return { waitForOnlyTab, busy, open, later };
}

const heard = () => new Promise((resolve) => setImmediate(resolve));

test("the first tab has the study, a later one is told", async (context) => {
  const { waitForOnlyTab, busy, open, later } = opening(context);
  open("a");
  await later(300);
  open("b");
  await later(300);
  assert.deepEqual([waitForOnlyTab, busy], [["a"], ["b"]]);
});

test("of two tabs that ask at the same time, exactly one has it, whoever was first", async (context) => {
  for (const numbers of [[0.2, 0.7], [0.7, 0.2]]) {
    await context.test(String(numbers), async (inner) => {
      const drawn = [...numbers];
      inner.mock.method(Math, "random", () => drawn.shift() ?? 0.5);
      const { waitForOnlyTab, busy, open, later } = opening(inner);
      open("a");
      open("b");
      await later(300);
      const lower = numbers[0]! < numbers[1]! ? "a" : "b";
      assert.deepEqual([waitForOnlyTab, busy], [[lower], [lower === "a" ? "b" : "a"]]);
      await later(2000);
      await later(300);
      assert.deepEqual(waitForOnlyTab, [lower], "the other asks again, and is answered");
    });
  }
});

test("when the tab that has it closes, the one that waits takes over", async (context) => {
  const { waitForOnlyTab, busy, open, later } = opening(context);
  open("a");
  await later(300);
  open("b");
  await later(300);
  Channel.all.shift(); // a closes
  await later(2000);
  await later(300);
  assert.deepEqual([waitForOnlyTab, busy], [["a", "b"], ["b"]]);
});

test("where locks are denied tabs ask each other, and where that is denied too nobody waits", async (context) => {
  const denied = () => { throw new DOMException("denied", "SecurityError"); };
  const before = Object.getOwnPropertyDescriptor(globalThis, "navigator")!;
  context.after(() => Object.defineProperty(globalThis, "navigator", before));
  Object.defineProperty(globalThis, "navigator", { value: { locks: { request: async () => denied() } }, configurable: true });
  const { later } = opening(context);
  const told: string[] = [];
  void waitForOnlyTab("study", () => told.push("first is busy")).then(() => told.push("first"));
  await later(300);
  void waitForOnlyTab("study", () => told.push("second is busy"));
  await later(300);
  assert.deepEqual(told, ["first", "second is busy"]);
  globalThis.BroadcastChannel = denied as unknown as typeof BroadcastChannel;
  await waitForOnlyTab("study", () => assert.fail("nobody else is known of"));
});
