import assert from "node:assert/strict";
import { test } from "node:test";

import { type Child, continued } from "./morph.ts";

const children = (...names: string[]): Child[] =>
  names.map((name) => (name.startsWith("#") ? { key: name, kind: "TR" } : { key: "", kind: name }));

test("children with a key are found wherever they have moved", () => {
  assert.deepEqual(continued(children("#a", "#b", "#c"), children("#c", "#new", "#a")), [2, -1, 0]);
});

test("children without a key are continued in order by those of their kind", () => {
  assert.deepEqual(continued(children("P", "UL", "P"), children("P", "P", "P")), [0, 2, -1]);
  assert.deepEqual(continued(children("#a", "P"), children("P", "#a")), [1, 0]);
});

test("nothing continues a child of another kind, or twice", () => {
  const old = [{ key: "#a", kind: "DIV" }];
  assert.deepEqual(continued(old, children("#a")), [-1]);
  assert.deepEqual(continued(children("#a"), children("#a", "#a")), [0, -1]);
});
