/** Check that the colours of experiment.css meet WCAG 2: contrast 4.5 for text, 3 for borders and focus. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const css = readFileSync(new URL("../experiment.css", import.meta.url), "utf8");
const root = css.slice(css.indexOf(":root"), css.indexOf("}"));
const entries = [...root.matchAll(/--([a-z-]+): (#[0-9a-f]{6})/g)].map(([, name, hex]) => [name, hex]);
const colours = Object.fromEntries(entries);

function luminance(hex: string): number {
  const [r, g, b] = [1, 3, 5]
    .map((at) => parseInt(hex.slice(at, at + 2), 16) / 255)
    .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!;
}

function contrast(one: string, other: string): number {
  const [a, b] = [one, other].map((name) => luminance(colours[name] ?? name));
  return (Math.max(a!, b!) + 0.05) / (Math.min(a!, b!) + 0.05);
}

const TEXT = [
  ["ink", "sheet"], ["ink", "page"], ["quiet", "sheet"], ["accent", "sheet"], ["on-accent", "accent"],
  ["on-accent", "accent-dark"], ["problem", "sheet"], ["problem", "#ffffff"], ["right", "#e5f2e9"], ["ink", "#fff3e8"],
  ["on-grey", "grey"], ["#5b6167", "#e4e5e6"],
] as const;
const MARKS = [
  ["line", "sheet"], ["line", "page"], ["focus", "sheet"], ["focus", "page"], ["accent", "#e6e7e8"],
  ["#000000", "grey"], ["right", "sheet"],
] as const;

test("text has enough contrast", () => {
  for (const [one, other] of TEXT) {
    assert.ok(contrast(one, other) >= 4.5, `${one} on ${other}: ${contrast(one, other)}`);
  }
});

test("borders and focus have enough contrast", () => {
  for (const [one, other] of MARKS) {
    assert.ok(contrast(one, other) >= 3, `${one} on ${other}: ${contrast(one, other)}`);
  }
});

test("every colour in this test is a colour of the page", () => {
  const known = [...TEXT, ...MARKS].flat();
  for (const name of known) assert.ok(name in colours || css.includes(name), name);
});
