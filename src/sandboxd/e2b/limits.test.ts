/** Times and users that clients of E2B may name, against the real daemon. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { skip, startSandboxd, type TestDaemon } from "../../../test/sandboxd-harness.ts";

/** More than a timer can wait. */
const LONG_MS = 2 ** 40;

describe("commands and terminals of E2B's clients", { skip }, () => {
  let d: TestDaemon;
  before(async () => {
    d = await startSandboxd();
  });
  after(() => d[Symbol.asyncDispose]());

  /** The events of a stream of answers. */
  async function start(message: object, headers: Record<string, string> = {}) {
    const body = Buffer.from(JSON.stringify(message));
    const head = Buffer.alloc(5);
    head.writeUInt32BE(body.length, 1);
    const { bytes } = await d.ask("POST", "/e2b/process.Process/Start", {
      headers: { "content-type": "application/connect+json", ...headers },
      body: Buffer.concat([head, body]),
    });
    const events: { event?: Record<string, Record<string, unknown>>; error?: { message: string } }[] = [];
    for (let at = 0; at < bytes.length; at += 5 + bytes.readUInt32BE(at + 1))
      events.push(JSON.parse(bytes.subarray(at + 5, at + 5 + bytes.readUInt32BE(at + 1)).toString()));
    return events;
  }
  const sh = (script: string) => ({ cmd: "/bin/sh", args: ["-c", script] });

  test("a terminal with a time longer than a timer has runs to its end, and is not told to stay awake all the time", async () => {
    const headers = { "connect-timeout-ms": String(LONG_MS), "keepalive-ping-interval": String(LONG_MS) };
    const pty = { size: { cols: 80, rows: 24 } };
    const events = await start({ process: sh("sleep 0.3; echo whole"), pty }, headers);
    const kinds = events.map(({ event }) => Object.keys(event ?? {})[0]);
    assert.ok(!kinds.includes("keepalive"), kinds.join());
    const text = events.map(({ event }) => Buffer.from(String(event?.data?.pty ?? ""), "base64").toString()).join("");
    assert.match(text, /whole/);
    assert.ok(events.some(({ event }) => event?.end?.exited === true));
  });

  test("a user whose home does not exist begins at the root", {
    skip: process.getuid?.() === 0 ? false : "only root starts programs of other users",
  }, async () => {
    const authorization = `Basic ${Buffer.from("nobody:").toString("base64")}`;
    const events = await start({ process: sh('echo "$(id -un) in $(pwd)"') }, { authorization });
    const text = events
      .map(({ event }) => Buffer.from(String(event?.data?.stdout ?? ""), "base64").toString())
      .join("");
    assert.equal(text, "nobody in /\n", JSON.stringify(events));
  });
});
