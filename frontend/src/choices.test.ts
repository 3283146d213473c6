import assert from "node:assert/strict";
import { test } from "node:test";

import { Choices } from "./choices.ts";
import type { Trials } from "./wire.ts";

const trials = { x1: [1, 11], y1: [2, 12], x2: [3, 13], y2: [4, 14] } as unknown as Trials;
const chosen = (item: number) => ({ item: [item], x1: [21], y1: [22], x2: [23], y2: [24] });

test("a trial shows the chosen pair if it arrived in time, else the fixed pair", () => {
  const choices = new Choices();
  choices.update({ choices: chosen(1), stops: [] });
  assert.deepEqual(choices.getPair(0, trials), { locations: [1, 2, 3, 4], chosen: false });
  assert.deepEqual(choices.getPair(1, trials), { locations: [21, 22, 23, 24], chosen: true });
});

test("a choice that arrives after its trial has begun changes nothing", () => {
  const choices = new Choices();
  const before = choices.getPair(0, trials);
  choices.update({ choices: chosen(0) });
  assert.deepEqual(choices.getPair(0, trials), before);
});

test("replies without choices are accepted", () => {
  const choices = new Choices();
  choices.update({});
  assert.equal(choices.getPair(1, trials).chosen, false);
  assert.equal(choices.stops.size, 0);
});
