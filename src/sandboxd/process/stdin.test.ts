import assert from "node:assert/strict";
import { test } from "node:test";
import {
  daemonOf,
  eventually,
  killDaemon,
  skip,
  startSandboxd,
  type TestDaemon,
} from "../../../test/sandboxd-harness.ts";

const start = (d: TestDaemon, name: string, command: string, more = {}) =>
  d.ask("POST", "/process", { body: { command, name, stdin: true, ...more } });
const over = async (d: TestDaemon, name: string) => {
  await eventually(
    async () => (await d.ask("GET", `/process/${name}`)).json.status !== "running",
    `the end of ${name}`,
  );
  return (await d.ask("GET", `/process/${name}`)).json;
};

test("standard input of a process", { skip }, async (t) => {
  await using d = await startSandboxd({ mode: "init" });

  await t.test("takes bytes in several requests until its end is asked for", async () => {
    await start(d, "cat", "cat; echo over");
    const first = await d.ask("POST", "/process/cat/stdin", { body: "one\n" });
    assert.deepEqual([first.status, first.json.bytes], [200, 4]);
    await eventually(async () => (await d.ask("GET", "/process/cat")).json.stdout === "one\n", "what was written");
    await d.ask("POST", "/process/cat/stdin", { body: { data: "zwei ü\n" } });
    await d.ask("POST", "/process/cat/stdin?end=true", { body: Buffer.from([0, 255, 10]) });
    const { stdout, exitCode } = await over(d, "cat");
    assert.equal(exitCode, 0);
    assert.match(stdout, /^one\nzwei ü\n\0.\nover\n$/su);
  });

  await t.test("is a pipe that can be opened by its name, and takes more than fits into it", async () => {
    await start(d, "count", "wc -c < /dev/stdin");
    const body = Buffer.alloc(3 * 1024 * 1024, 120);
    const { json } = await d.ask("POST", "/process/count/stdin", { body });
    assert.equal(json.bytes, body.length);
    await d.ask("POST", "/process/count/stdin", { body: { end: true } });
    assert.equal((await over(d, "count")).stdout.trim(), String(body.length));
  });

  await t.test("a process that ends without reading ends the writing", async () => {
    await start(d, "deaf", "sleep 0.2; exit 4");
    const { status, json } = await d.ask("POST", "/process/deaf/stdin", { body: Buffer.alloc(4 * 1024 * 1024) });
    assert.deepEqual([status, /reads/.test(json.error)], [422, true]);
    assert.equal((await over(d, "deaf")).exitCode, 4);
    assert.equal((await d.ask("POST", "/process/deaf/stdin", { body: "x" })).status, 404);
  });

  await t.test("is closed unless it was asked for", async () => {
    assert.equal((await d.exec("cat")).json.exitCode, 0);
    await d.ask("POST", "/process", { body: { command: "sleep 100", name: "plain" } });
    const { status, json } = await d.ask("POST", "/process/plain/stdin", { body: "x" });
    assert.deepEqual([status, /"stdin": true/.test(json.error)], [422, true]);
    assert.equal((await d.ask("POST", "/process/nobody/stdin", { body: "x" })).status, 404);
  });

  await t.test("ends with the daemon, and says so", async () => {
    await start(d, "left", "cat > /dev/null; echo saw the end; sleep 100");
    const before = daemonOf(d);
    await killDaemon(d);
    assert.notEqual(daemonOf(d), before);
    await eventually(async () => (await d.ask("GET", "/process/left")).json.stdout === "saw the end\n", "the end");
    const { status, json } = await d.ask("POST", "/process/left/stdin", { body: "x" });
    assert.deepEqual([status, /restarted/.test(json.error)], [422, true]);
  });
});
