import assert from "node:assert/strict";
import { test } from "node:test";

import { formAddress, partAddress } from "./addresses.ts";

test("the address of a part keeps the page's query but not its fragment", () => {
  assert.equal(partAddress("http://a/studies/x?image=cat#people"), "http://a/studies/x?image=cat&part=live");
  assert.equal(partAddress("http://a/studies/x?part=live", "fit"), "http://a/studies/x?part=fit");
});

test("the address of a form has its fields, without empty ones", () => {
  const fields: [string, string][] = [["segments", "3"], ["participant", ""], ["smoothness", "0.1"]];
  assert.equal(formAddress("http://a/v/images/cat?segments=2", fields), "http://a/v/images/cat?segments=3&smoothness=0.1");
});
