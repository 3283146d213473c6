import assert from "node:assert/strict";
import { test } from "node:test";

import { Schedule, type Step } from "./schedule.ts";
import type { Trials } from "./wire.ts";

const TRIES = 3;

/**
 * Create practice trials, then blocks for these images with `each` trials; with `catches`, the second one is a catch
 * trial.
 */
function session({ practice = 0, images = ["a"], blocks = 2, each = 3, catches = false } = {}): Trials {
  const trials: Trials = {
    image: [], block: [], trial: [], x1: [], y1: [], x2: [], y2: [], practice: [], answer: [],
  };
  const add = (image: string, block: number, trial: number, isPractice: boolean, isCatch: boolean) => {
    trials.image.push(isCatch ? "practice" : image);
    trials.block.push(block);
    trials.trial.push(trial);
    for (const key of ["x1", "y1", "x2", "y2"] as const) trials[key].push(0);
    trials.practice.push(isPractice);
    trials.answer.push(isPractice ? true : null);
  };
  for (let trial = 0; trial < practice; trial++) add("practice", 0, trial, true, false);
  for (const image of images)
    for (let block = 0; block < blocks; block++)
      for (let trial = 0; trial < each; trial++) add(image, block, trial, false, catches && trial === 1);
  return trials;
}

/** Run the schedule and return the steps as words. Trials are shown correctly unless `bad` says otherwise. */
function walk(schedule: Schedule, bad: (item: number, attempt: number) => boolean = () => false, most = 1000): string[] {
  const words: string[] = [];
  const attempts = new Map<number, number>();
  for (let step = schedule.next(); step.kind !== "end" && words.length < most; step = schedule.next()) {
    words.push(describeStep(step));
    if (step.kind !== "trial") continue;
    const attempt = (attempts.get(step.item) ?? 0) + 1;
    attempts.set(step.item, attempt);
    schedule.answer({ item: step.item, good: !bad(step.item, attempt) });
  }
  return words;
}

function describeStep(step: Step): string {
  if (step.kind === "trial") return String(step.item);
  if (step.kind === "preview") return `see ${step.image}`;
  if (step.kind === "block") return step.block.practice ? "practice" : `${step.number}/${step.blocks}`;
  return step.kind;
}

test("each block has a start, a preview and trials, with a break before the next", () => {
  const steps = walk(new Schedule(session({ practice: 2, catches: true }), 0, TRIES));
  assert.deepEqual(steps, [
    "practice", "see practice", "0", "1",
    "1/2", "see a", "2", "3", "4", "break",
    "2/2", "see a", "5", "6", "7",
  ]);
});

test("another image is another block, even with the same number", () => {
  const steps = walk(new Schedule(session({ images: ["a", "b"], blocks: 1, each: 2 }), 0, TRIES));
  assert.deepEqual(steps, ["1/2", "see a", "0", "1", "break", "2/2", "see b", "2", "3"]);
});

test("a catch trial on another image does not end a block", () => {
  assert.equal(new Schedule(session({ catches: true, blocks: 3 }), 0, TRIES).blocks.length, 3);
});

test("breaks come after a number of trials, including repeats", () => {
  const steps = walk(new Schedule(session({ blocks: 1, each: 5 }), 2, TRIES), (item, attempt) => item === 0 && attempt === 1);
  assert.deepEqual(steps, ["1/1", "see a", "0", "1", "break", "2", "3", "break", "4", "0"]);
});

test("practice trials do not bring the first break closer, and each block counts anew", () => {
  const steps = walk(new Schedule(session({ practice: 2, each: 5 }), 3, TRIES));
  assert.deepEqual(steps, [
    "practice", "see practice", "0", "1",
    "1/2", "see a", "2", "3", "4", "break", "5", "6", "break",
    "2/2", "see a", "7", "8", "9", "break", "10", "11",
  ]);
});

test("a flagged trial is repeated at the end of its block", () => {
  const steps = walk(new Schedule(session(), 0, TRIES), (item, attempt) => item === 1 && attempt === 1);
  assert.deepEqual(steps, ["1/2", "see a", "0", "1", "2", "1", "break", "2/2", "see a", "3", "4", "5"]);
});

test("a trial is asked three times at most, and repeats take turns", () => {
  const steps = walk(new Schedule(session({ blocks: 1 }), 0, TRIES), (item) => item < 2);
  assert.deepEqual(steps, ["1/1", "see a", "0", "1", "2", "0", "1", "0", "1"]);
  assert.equal(steps.filter((step) => step === "0").length, TRIES);
});

test("after a reload at any point, exactly the open trials are asked, each once", () => {
  const trials = session({ practice: 2, blocks: 2, each: 3 });
  const all = trials.image.map((_, item) => item);
  for (const done of all) {
    const schedule = new Schedule(trials, 0, TRIES);
    schedule.restoreAnswers(all.slice(0, done).map((item) => ({ item, good: true })));
    const items = walk(schedule).filter((step) => /^\d+$/.test(step)).map(Number);
    assert.deepEqual(items, all.slice(done));
  }
});

test("a reload does not begin with a break, and shows the preview again", () => {
  const schedule = new Schedule(session(), 2, TRIES);
  schedule.restoreAnswers([0, 1].map((item) => ({ item, good: true })));
  assert.deepEqual(walk(schedule, () => false, 3), ["1/2", "see a", "2"]);
});

test("attempts before a reload count", () => {
  const schedule = new Schedule(session({ blocks: 1 }), 0, TRIES);
  schedule.restoreAnswers([0, 1, 2, 0].map((item) => ({ item, good: item !== 0 })));
  assert.deepEqual(walk(schedule, () => true), ["1/1", "see a", "0"]);
});

test("a repeated block is asked completely, and earlier blocks are not", () => {
  const schedule = new Schedule(session(), 0, TRIES);
  schedule.restoreAnswers([0, 1, 2, 3, 4].map((item) => ({ item, good: true })));
  schedule.repeatFrom(3);
  assert.deepEqual(walk(schedule), ["2/2", "see a", "3", "4", "5"]);
});

test("a paused trial stays the next one", () => {
  const schedule = new Schedule(session(), 0, TRIES);
  schedule.next();
  schedule.next();
  assert.deepEqual(schedule.next(), { kind: "trial", item: 0 });
  assert.deepEqual(schedule.next(), { kind: "trial", item: 0 });
});

test("percent is the share of answered items", () => {
  const schedule = new Schedule(session(), 0, TRIES);
  assert.equal(schedule.percent, 0);
  schedule.restoreAnswers([0, 1, 2].map((item) => ({ item, good: true })));
  assert.equal(schedule.percent, 50);
  walk(schedule);
  assert.equal(schedule.percent, 100);
});

test("a schedule without items ends at once", () => {
  assert.deepEqual(new Schedule(session({ images: [] }), 0, TRIES).next(), { kind: "end" });
});

test("the study sets the number of attempts", () => {
  const steps = walk(new Schedule(session({ blocks: 1, each: 1 }), 0, 2), () => true);
  assert.deepEqual(steps, ["1/1", "see a", "0", "0"]);
});

test("a refused answer is asked again, even after the end, but not for ever", () => {
  const schedule = new Schedule(session({ blocks: 1, each: 2 }), 0, TRIES);
  walk(schedule);
  schedule.retract(1);
  assert.deepEqual(walk(schedule), ["1"]);
  schedule.retract(1);
  assert.deepEqual(walk(schedule), ["1"]);
  schedule.retract(1);
  assert.deepEqual(walk(schedule), []);
});

test("a refused answer is no attempt: the server does not know it", () => {
  const schedule = new Schedule(session({ blocks: 1, each: 1 }), 0, TRIES);
  walk(schedule, () => true);
  schedule.retract(0);
  assert.deepEqual(walk(schedule, () => true), ["0"]);
});

test("a stopped block repeats flagged trials before the stop, omits later ones, and goes on to the next image", () => {
  const schedule = new Schedule(session({ images: ["a", "b"], blocks: 1, each: 4 }), 0, TRIES);
  schedule.restoreAnswers([{ item: 0, good: true }, { item: 1, good: false }, { item: 2, good: true }, { item: 3, good: false }]);
  schedule.endBlockBefore(3);
  schedule.endBlockBefore(3);
  const items: number[] = [];
  for (let step = schedule.next(); step.kind !== "end"; step = schedule.next()) {
    if (step.kind !== "trial") continue;
    items.push(step.item);
    schedule.answer({ item: step.item, good: true });
  }
  assert.deepEqual(items, [1, 4, 5, 6, 7]);
  assert.equal(schedule.percent, 100);
});
