import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import {
  closed,
  daemonOf,
  eventually,
  killDaemon,
  skip,
  startSandboxd,
  type TestDaemon,
} from "../../../test/sandboxd-harness.ts";

const MB = 1024 * 1024;

const initiate = async (d: TestDaemon, name: string): Promise<string> =>
  (await d.ask("POST", `/filesystem-multipart/initiate/${name}`, { body: {} })).json.uploadId;
const put = (d: TestDaemon, id: string, number: number, body: Buffer) =>
  d.ask("PUT", `/filesystem-multipart/${id}/part?partNumber=${number}`, { body });
const complete = (d: TestDaemon, id: string, parts: unknown) =>
  d.ask("POST", `/filesystem-multipart/${id}/complete`, { body: { parts } });

/** Sends the head of a request and a body shorter than announced, then disconnects. */
async function breakOff(d: TestDaemon, path: string, framing: string, body: string): Promise<void> {
  const socket = connect(d.config.apiSocket);
  const over = closed(socket);
  const head = `PUT ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/octet-stream\r\n${framing}\r\n\r\n`;
  await new Promise<void>((done) => socket.write(head + body, () => done()));
  socket.destroy();
  await over;
}

const FRAMINGS = [
  ["Content-Length: 1000", "half of it"],
  ["Transfer-Encoding: chunked", "a\r\nhalf of it\r\n"],
] as const;

test("an upload in parts goes on after a lost connection", { skip }, async (t) => {
  await using d = await startSandboxd({ mode: "init" });

  await t.test("a part that broke off is not there, and the others are", async () => {
    const id = await initiate(d, "resumed.bin");
    const [one, two] = [randomBytes(MB), randomBytes(1000)];
    await put(d, id, 1, one);
    for (const [framing, body] of FRAMINGS)
      await breakOff(d, `/filesystem-multipart/${id}/part?partNumber=2`, framing, body);
    const folder = join(d.workDir, `.upload-${id}`);
    await eventually(() => readdirSync(folder).every((name) => !name.startsWith("incoming")), "nothing half received");
    const listed = (await d.ask("GET", `/filesystem-multipart/${id}/parts`)).json.parts;
    assert.deepEqual(
      listed.map(({ partNumber, size, etag }: Record<string, unknown>) => [partNumber, size, etag]),
      [[1, MB, createHash("md5").update(one).digest("hex")]],
    );
    const { json } = await put(d, id, 2, two);
    assert.equal((await complete(d, id, [...listed, json])).status, 200);
    assert.ok(readFileSync(join(d.workDir, "resumed.bin")).equals(Buffer.concat([one, two])));
  });

  await t.test("a whole file that broke off takes no place", async () => {
    for (const [framing, body] of FRAMINGS) await breakOff(d, "/filesystem/broken.bin", framing, body);
    await eventually(() => readdirSync(d.workDir).every((name) => !/broken|\.tmp|incoming/.test(name)), "nothing left");
    assert.ok(!existsSync(join(d.workDir, "broken.bin")));
  });

  await t.test("completing again says the same", async () => {
    const id = await initiate(d, "twice.bin");
    const { json } = await put(d, id, 1, Buffer.from("content"));
    const [first, second] = await Promise.all([complete(d, id, [json]), complete(d, id, [json])]);
    const third = await complete(d, id, [json]);
    assert.deepEqual([first.status, second.status, third.status], [200, 200, 200]);
    assert.deepEqual(third.json, first.json);
    assert.equal((await complete(d, id, [{ ...json, etag: "0".repeat(32) }])).status, 500);
    assert.deepEqual((await d.ask("GET", "/filesystem-multipart")).json.uploads, []);
    assert.equal((await put(d, id, 1, Buffer.from("late"))).status, 409);
    assert.equal(readFileSync(join(d.workDir, "twice.bin"), "utf8"), "content");
  });

  await t.test("completing is interrupted by the end of the daemon, and goes on", async () => {
    const id = await initiate(d, "killed.bin");
    const contents = Array.from({ length: 6 }, () => randomBytes(2 * MB));
    const parts: unknown[] = [];
    for (const [i, content] of contents.entries()) parts.push((await put(d, id, i + 1, content)).json);
    const interrupted = complete(d, id, parts).catch(() => null);
    // Whichever moment this is: before, in the middle, or behind the last part.
    await eventually(
      () => !existsSync(join(d.workDir, `.upload-${id}`, `1.${2 * MB}.${md5(contents[0])}`)),
      "it began",
    );
    const before = daemonOf(d);
    await killDaemon(d);
    assert.notEqual(daemonOf(d), before);
    await interrupted;
    assert.equal((await complete(d, id, parts)).status, 200);
    assert.ok(readFileSync(join(d.workDir, "killed.bin")).equals(Buffer.concat(contents)));
    assert.ok(!existsSync(join(d.workDir, `.upload-${id}`)));
  });
});

const md5 = (content: Buffer | undefined): string =>
  createHash("md5")
    .update(content ?? "")
    .digest("hex");
