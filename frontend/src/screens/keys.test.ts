import assert from "node:assert/strict";
import { test } from "node:test";

import { keyLabel, keyName, remap } from "./keys.ts";

const text = (key: string) => `<${key}>`;

test("a pressed key has its name from the study file", () => {
  const names = ["f", "F", "7", " ", "Enter", "ArrowLeft"].map((key) => keyName({ key }));
  assert.deepEqual(names, ["f", "f", "7", "space", "enter", "arrowleft"]);
});

test("keys with a function in the browser, or missing on many keyboards, are no answers", () => {
  for (const key of ["Escape", "Tab", "F5", "Shift", "é", "Dead", "Backspace", "ArrowLeftt"]) {
    assert.equal(keyName({ key }), null, key);
  }
});

test("a key pressed with Ctrl, Alt or Meta is no answer", () => {
  for (const held of ["ctrlKey", "altKey", "metaKey"]) assert.equal(keyName({ key: "f", [held]: true }), null, held);
});

test("the key of the other answer is refused, the same key again is accepted", () => {
  const keys = { same: "f", different: "j" };
  assert.equal(remap(keys, "same", "j"), "keys_taken");
  assert.equal(remap(keys, "same", null), "keys_not_allowed");
  assert.deepEqual(remap(keys, "same", "f"), keys);
  assert.deepEqual(remap(keys, "different", "space"), { same: "f", different: "space" });
});

test("a label is what is printed on the key", () => {
  assert.deepEqual(["f", "arrowup", "space"].map((key) => keyLabel(key, text)), ["F", "↑", "<key_space>"]);
});
