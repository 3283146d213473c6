import assert from "node:assert/strict";
import { test } from "node:test";

import { type Child, matchChildren } from "./morph.ts";

const children = (...names: string[]): Child[] =>
  names.map((name) => (name.startsWith("#") ? { key: name, kind: "TR" } : { key: "", kind: name }));

test("children with a key are found wherever they have moved", () => {
  assert.deepEqual(matchChildren(children("#a", "#b", "#c"), children("#c", "#new", "#a")), [2, -1, 0]);
});

test("children without a key are matched in order with those of their kind", () => {
  assert.deepEqual(matchChildren(children("P", "UL", "P"), children("P", "P", "P")), [0, 2, -1]);
  assert.deepEqual(matchChildren(children("#a", "P"), children("P", "#a")), [1, 0]);
});

test("a child is not matched with another kind, or twice", () => {
  const old = [{ key: "#a", kind: "DIV" }];
  assert.deepEqual(matchChildren(old, children("#a")), [-1]);
  assert.deepEqual(matchChildren(children("#a"), children("#a", "#a")), [0, -1]);
});
