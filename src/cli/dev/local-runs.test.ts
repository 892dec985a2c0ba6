/** A series of runs goes on whatever fails. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { freePort } from "../../../test/free-port.ts";
import { LocalRuns } from "./local-runs.ts";

/** A PATH without the Node that Berth brings along, where this is that one. */
const PATH = process.execPath.includes("/node_modules/") ? "/usr/bin:/bin" : process.env.PATH;

test("a run without new credentials uses the last ones, and later runs get new ones", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "berth-runs-"));
  const port = await freePort();
  let bearer: () => Promise<string> = async () => "first";
  const said: string[] = [];
  let ready = Promise.withResolvers<void>();
  const runs = new LocalRuns({
    project: { name: "series", kind: "agent", dir, spec: {}, workspace: null } as never,
    line: "exec node index.js",
    place: {
      connection: { url: "http://x", workspace: null, source: "", bearer: () => bearer() },
      workspace: "main",
      port,
    },
    context: { env: { PATH }, note: (text) => void said.push(text), print: () => ready.resolve() },
  });
  t.after(async () => {
    await runs.stop();
    rmSync(dir, { recursive: true, force: true });
  });
  const asked = async (step: () => Promise<void>): Promise<string> => {
    ready = Promise.withResolvers<void>();
    await step();
    await ready.promise;
    return (await fetch(`http://127.0.0.1:${port}`)).text();
  };
  writeFileSync(
    join(dir, "index.js"),
    `require("node:http").createServer((_, response) => response.end(process.env.BL_API_KEY + " " + process.version))
      .listen(process.env.PORT, process.env.HOST);`,
  );
  // Its Node is the one of this process, not one of the shell's PATH.
  assert.equal(await asked(() => runs.start()), `first ${process.version}`);
  bearer = () => Promise.reject(new Error("the server is away"));
  await runs.renew();
  assert.match(await asked(() => runs.restart("index.js has changed: restarting")), /^first /);
  bearer = async () => "second";
  assert.match(await asked(() => runs.renew()), /^second /);
  assert.deepEqual(said, [
    "index.js has changed: restarting",
    "the credentials were not renewed, the last ones are used: the server is away",
    "the credentials were renewed: restarting",
  ]);
});

test("a program that never listens is replaced, too", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "berth-runs-"));
  const said: string[] = [];
  const runs = new LocalRuns({
    project: { name: "silent", kind: "agent", dir, spec: {}, workspace: null } as never,
    line: "exec sleep 600",
    place: {
      connection: { url: "http://x", workspace: null, source: "", bearer: async () => "key" },
      workspace: "main",
      port: await freePort(),
    },
    context: { env: { PATH }, note: (text) => void said.push(text), print: () => {} },
  });
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  await runs.start();
  await runs.restart("again");
  await runs.stop();
  assert.deepEqual(said, ["again"]);
});
