import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { loadConfig } from "../config.ts";
import { writeCredentials } from "../lib/credentials.ts";
import { leaveNote } from "../lib/process-note.ts";
import { systemClock } from "../lib/time/clock.ts";
import { openOwnAuthority } from "../lib/x509/own-authority.ts";
import { CHECKS } from "./doctor.ts";

test("a server whose authority was made after the start of this process is asked all the same", async (t) => {
  const data = mkdtempSync(join(tmpdir(), "berth-doctor-"));
  t.after(() => rmSync(data, { recursive: true }));
  const { certificate, key } = openOwnAuthority(data, systemClock).certificateFor(["127.0.0.1"]);
  const server = createServer({ cert: certificate, key }, ({ headers }, response) => {
    response.writeHead(headers.authorization === "Bearer right" ? 200 : 401).end("[]");
  }).listen(0, "127.0.0.1");
  t.after(() => server.close());
  await once(server, "listening");
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  leaveNote(data, { url, startedAt: "now" });
  const found = async (apiKey: string) => {
    writeCredentials(data, { url, workspace: "main", apiKey });
    return CHECKS.credentials?.(loadConfig({ flags: { data }, env: {} }), () => Promise.reject(new Error("not asked")));
  };
  assert.match((await found("right"))?.says ?? "", /accepted by https:/);
  assert.match((await found("wrong"))?.says ?? "", /^https:\S+ answers 401 to the key/);
});
