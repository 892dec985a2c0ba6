import assert from "node:assert/strict";
import fs, { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { UnixEndpoint } from "./endpoint.ts";
import { COPYING_FILE, dialUnix } from "./unix.ts";

/** The folder of a workload whose memory is being copied. */
function copied(t: TestContext): UnixEndpoint {
  const dir = mkdtempSync(join(tmpdir(), "berth-copied-"));
  t.after(() => rmSync(dir, { recursive: true }));
  mkdirSync(join(dir, "run"));
  writeFileSync(join(dir, COPYING_FILE), "");
  return { kind: "unix", node: "", dir: join(dir, "run") };
}

test("requests wait for a workload that is being copied, and get through when its socket is back", async (t) => {
  const endpoint = copied(t);
  const dials = Array.from({ length: 20 }, () => dialUnix(endpoint, "api"));
  const server = createServer((socket) => socket.end()).listen(join(endpoint.dir, "api.sock"));
  t.after(() => server.close());
  for (const socket of await Promise.all(dials)) socket.destroy();
});

test("many requests that wait share their looks", async (t) => {
  const endpoint = copied(t);
  const attempts = t.mock.method(fs, "openSync");
  syncBuiltinESMExports();
  t.after(() => {
    attempts.mock.restore();
    syncBuiltinESMExports();
  });
  const dials = Array.from({ length: 20 }, () => dialUnix(endpoint, "api"));
  for (const each of await Promise.allSettled(dials)) assert.equal(each.status, "rejected");
  const count = attempts.mock.calls.filter(({ arguments: [path] }) => String(path).startsWith(endpoint.dir)).length;
  assert.ok(count > 0 && count <= 5 * dials.length, `${count} attempts of ${dials.length} requests`);
});
