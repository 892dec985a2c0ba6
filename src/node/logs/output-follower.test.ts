import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import type { LogTag } from "../../contract/log-line.ts";
import { systemClock } from "../../lib/time/clock.ts";
import { type LogStore, openLogStore } from "./log-store.ts";
import { BACKLOG_BYTES_MAX, OutputFollower, type OutputSource, READ_BYTES } from "./output-follower.ts";

const dir = mkdtempSync(join(tmpdir(), "berth-follower-"));
after(() => rmSync(dir, { recursive: true, force: true }));

const onError = (error: unknown): never => {
  throw error;
};

/** Output in memory, where a driver has files. */
class Written implements OutputSource {
  stdout = Buffer.alloc(0);
  stderr = Buffer.alloc(0);

  write(stream: "stdout" | "stderr", text: string): void {
    this[stream] = Buffer.concat([this[stream], Buffer.from(text)]);
  }

  async readOutput(_uid: string, stream: "stdout" | "stderr", offset: number, bytesMax: number) {
    return { bytes: this[stream].subarray(offset, offset + bytesMax), size: this[stream].length };
  }
}

interface Case {
  tag: LogTag;
  store: LogStore;
  follower: OutputFollower;
  written: Written;
  lines(): Promise<string[]>;
}

async function followed(name: string, run: (each: Case) => Promise<void>): Promise<void> {
  const tag: LogTag = { workspace: "main", plural: "agents", name, uid: "u", source: "run" };
  const store = openLogStore({ dir, clock: systemClock, onError });
  const follower = new OutputFollower({ store, clock: systemClock, onError });
  const written = new Written();
  const lines = async (): Promise<string[]> => {
    const page = await store.query({ ...tag, fromMs: 0, toMs: Date.now() + 1000, limit: 100_000 });
    return page.lines.map(({ message }) => message).reverse();
  };
  follower.follow("w1", tag, written);
  try {
    await run({ tag, store, follower, written, lines });
  } finally {
    await follower.stop();
    await store.stop();
  }
}

test("lines are taken when they are whole, and the rest at the end", () =>
  followed("whole", async ({ tag, follower, written, lines }) => {
    written.write("stdout", "one\r\ntwo\nthr");
    await Promise.all([follower.lookAt(tag), follower.lookAt(tag), follower.lookAt(tag)]);
    assert.deepEqual(await lines(), ["one", "two"]);
    written.write("stdout", "ee\n\n\n");
    written.write("stderr", "no end");
    await follower.lookAt(tag);
    assert.deepEqual(await lines(), ["one", "two", "three"]);
    await follower.finish("w1");
    assert.deepEqual(await lines(), ["one", "two", "three", "no end"]);
    written.write("stdout", "too late\n");
    await follower.lookAt(tag);
    assert.equal((await lines()).length, 4);
  }));

test("a follower that starts anew goes on behind the last line that was kept", () =>
  followed("anew", async ({ tag, store, follower, written, lines }) => {
    written.write("stdout", "one\ntwo\nhalf");
    written.write("stderr", "bad\n");
    await follower.lookAt(tag);
    await follower.stop();
    const next = new OutputFollower({ store, clock: systemClock, onError });
    next.follow("w1", tag, written, await store.positions(tag, "w1"));
    written.write("stdout", " more\n");
    await next.finish("w1");
    await next.stop();
    assert.deepEqual((await lines()).sort(), ["bad", "half more", "one", "two"]);
    assert.deepEqual(await store.positions(tag, "other"), { stdout: 0, stderr: 0 });
  }));

test("a flood is jumped over with a line that says how much; a burst is kept whole", () =>
  followed("flood", async ({ follower, written, lines }) => {
    const burst = Array.from({ length: 20_000 }, (_, n) => `burst ${n} of many lines`);
    written.write("stdout", `${burst.join("\n")}\n`);
    await follower.finish("w1");
    assert.deepEqual(await lines(), burst);
    const [first = ""] = burst;
    follower.follow("w2", { workspace: "main", plural: "agents", name: "flood", uid: "u", source: "run" }, written, {
      stdout: written.stdout.length,
      stderr: 0,
    });
    written.write("stdout", `${first}\n`.repeat(Math.ceil((2 * BACKLOG_BYTES_MAX) / first.length)));
    written.write("stdout", "the end\n");
    await follower.finish("w2");
    const rest = (await lines()).slice(burst.length);
    assert.match(rest[0] ?? "", /^\d+ KB of output were dropped here/);
    assert.equal(rest.at(-1), "the end");
    assert.ok(rest.length < READ_BYTES / first.length + 3, String(rest.length));
  }));

test("a line without end and a file that was emptied hold nothing up", () =>
  followed("odd", async ({ tag, follower, written, lines }) => {
    written.write("stdout", `${"x".repeat(READ_BYTES + 10)}`);
    await follower.lookAt(tag);
    const [long = ""] = await lines();
    assert.match(long, /characters more\]$/);
    written.stdout = Buffer.from("fresh\n");
    await follower.lookAt(tag);
    assert.equal((await lines()).at(-1), "fresh");
  }));

test("workspaces take turns: a thousand busy workloads of one do not keep another one waiting", async () => {
  const store = openLogStore({ dir, clock: systemClock, onError });
  let nowMs = Date.now();
  const follower = new OutputFollower({ store, clock: { now: () => nowMs }, onError });
  const read: string[] = [];
  const calm = Promise.withResolvers<void>();
  const source: OutputSource = {
    async readOutput(uid) {
      if (!read.includes(uid)) read.push(uid);
      if (uid === "calm") calm.resolve();
      return { bytes: Buffer.alloc(0), size: 0 };
    },
  };
  const tagOf = (workspace: string): LogTag => ({ workspace, plural: "agents", name: "a", uid: "u", source: "run" });
  for (let n = 0; n < 1000; n += 1) follower.follow(`noisy-${n}`, tagOf("noisy"), source);
  follower.follow("calm", tagOf("calm"), source);
  try {
    nowMs += 3_600_000;
    await calm.promise;
    assert.ok(read.indexOf("calm") < 20, `behind ${read.indexOf("calm")} others`);
  } finally {
    await follower.stop();
    await store.stop();
  }
});
