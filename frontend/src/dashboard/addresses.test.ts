import assert from "node:assert/strict";
import { test } from "node:test";

import { formAddress, partAddress } from "./addresses.ts";

test("a part has the page's own query, and no place in it", () => {
  assert.equal(partAddress("http://a/studies/x?image=cat#people"), "http://a/studies/x?image=cat&part=live");
  assert.equal(partAddress("http://a/studies/x?part=live", "fit"), "http://a/studies/x?part=fit");
});

test("a form leads to its fields, without those left empty", () => {
  const fields: [string, string][] = [["segments", "3"], ["participant", ""], ["smoothness", "0.1"]];
  assert.equal(formAddress("http://a/v/images/cat?segments=2", fields), "http://a/v/images/cat?segments=3&smoothness=0.1");
});
