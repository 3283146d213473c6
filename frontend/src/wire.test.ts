import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";

import { parseEntry, RefusedError, fetchStudy } from "./wire.ts";

test("Prolific's parameters or a personal link are parsed from the address", () => {
  assert.deepEqual(parseEntry("?PROLIFIC_PID=p&STUDY_ID=s&SESSION_ID=x"), {
    prolific_pid: "p", prolific_study: "s", prolific_session: "x",
  });
  assert.deepEqual(parseEntry("?link=abc&utm_source=mail"), { link: "abc" });
  assert.deepEqual(parseEntry("?PROLIFIC_PID="), {});
  assert.deepEqual(parseEntry(""), {});
});

/** Fetch the study from a real server; `fetch` adds its address, which a page would have. */
async function fetchFrom(status: number, body: string): Promise<unknown> {
  const server = createServer((_request, reply) => reply.writeHead(status).end(body)).listen(0);
  const { port } = server.address() as AddressInfo;
  const real = globalThis.fetch;
  globalThis.fetch = (path, options) => real(`http://127.0.0.1:${port}/${path}`, options);
  try {
    return await fetchStudy().catch((error: unknown) => error);
  } finally {
    globalThis.fetch = real;
    server.close();
  }
}

test("a refusal carries its reason and message", async () => {
  const body = { error: "Conflict", reason: "full", message: "Enough people." };
  const error = await fetchFrom(409, JSON.stringify(body));
  assert.ok(error instanceof RefusedError);
  assert.deepEqual([error.status, error.reason, error.message], [409, "full", "Enough people."]);
});

test("any other reply is an error that may be temporary", async () => {
  const troubles: [number, string][] = [
    [503, '{"error": "VsegError", "message": "Busy."}'],
    [500, "oops"],
    [200, "<html>Welcome to the hotel</html>"],
    [404, "<html>No such host</html>"],
    [409, '{"detail": "not our shape"}'],
    [200, "null"],
    [429, '{"error": "TooMany"}'],
  ];
  for (const [status, body] of troubles) {
    const error = await fetchFrom(status, body);
    assert.ok(error instanceof Error && !(error instanceof RefusedError), `${status} ${body}: ${String(error)}`);
  }
});
