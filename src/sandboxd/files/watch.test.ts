import assert from "node:assert/strict";
import { chmodSync, mkdirSync, readdirSync, readlinkSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { eventually, linesOf, skip, startSandboxd, type TestDaemon } from "../../../test/sandboxd-harness.ts";

interface Event {
  op: string;
  name: string;
  path: string;
  error: string | null;
}

async function watching(
  d: TestDaemon,
  path: string,
): Promise<{ events: Event[]; has(op: string, name: string, folder?: string): boolean; close(): void }> {
  const response = await d.open("GET", path);
  assert.equal(response.statusCode, 200);
  assert.match(response.headers["content-type"] ?? "", /^text\/plain/);
  const events: Event[] = [];
  void (async () => {
    for await (const line of linesOf(response)) events.push(JSON.parse(line));
  })().catch(() => {});
  return {
    events,
    has: (op, name, folder) =>
      events.some((one) => one.op === op && one.name === name && (!folder || one.path === folder)),
    close: () => response.destroy(),
  };
}

const inotifyOf = (pid: number | undefined): number =>
  readdirSync(`/proc/${pid}/fd`).filter((fd) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`).includes("inotify");
    } catch {
      return false;
    }
  }).length;

test("watching a folder", { skip }, async (t) => {
  await using d = await startSandboxd();
  const at = (name: string): string => join(d.workDir, name);

  await t.test("tells creations, writes, permissions, moves and removals apart", async () => {
    const watch = await watching(d, "/watch/filesystem/");
    writeFileSync(at("a"), "x");
    await eventually(() => watch.has("CREATE", "a", d.workDir) && watch.has("WRITE", "a", d.workDir));
    chmodSync(at("a"), 0o600);
    await eventually(() => watch.has("CHMOD", "a"));
    renameSync(at("a"), at("b"));
    await eventually(() => watch.has("RENAME", "a") && watch.has("CREATE", "b"));
    rmSync(at("b"));
    await eventually(() => watch.has("REMOVE", "b"));
    for (const event of watch.events) assert.equal(event.error, null);
    watch.close();
  });

  await t.test("one level only, unless asked for more", async () => {
    mkdirSync(at("sub/deep"), { recursive: true });
    const flat = await watching(d, `/watch/filesystem/${encodeURIComponent(d.workDir)}`);
    const deep = await watching(d, `/watch/filesystem/${encodeURIComponent(`${d.workDir}/**`)}`);
    const plain = await watching(d, `/watch/filesystem/${d.workDir}/**`);
    writeFileSync(at("sub/deep/x"), "");
    await eventually(() => deep.has("CREATE", "x", at("sub/deep")) && plain.has("CREATE", "x", at("sub/deep")));
    // A new folder is watched too, and files created in it at once are reported.
    mkdirSync(at("new/er"), { recursive: true });
    writeFileSync(at("new/er/early"), "");
    await eventually(() => deep.has("CREATE", "new", d.workDir) && deep.has("CREATE", "early", at("new/er")));
    writeFileSync(at("new/er/late"), "");
    await eventually(() => deep.has("CREATE", "late", at("new/er")));
    // A folder that moved is reported under its new name.
    renameSync(at("new"), at("moved"));
    await eventually(() => deep.has("RENAME", "new") && deep.has("CREATE", "moved"));
    writeFileSync(at("moved/er/after"), "");
    await eventually(() => deep.has("CREATE", "after", at("moved/er")));
    assert.ok(!flat.events.some((event) => event.name === "x"));
    for (const watch of [flat, deep, plain]) watch.close();
  });

  await t.test("ignores what it is told to", async () => {
    const watch = await watching(d, "/watch/filesystem/?ignore=node_modules,.tmp");
    writeFileSync(at("x.tmp"), "");
    mkdirSync(at("node_modules"));
    writeFileSync(at("seen"), "");
    await eventually(() => watch.has("CREATE", "seen"));
    assert.deepEqual([...new Set(watch.events.map((event) => event.name))], ["seen"]);
    watch.close();
  });

  await t.test("odd names do not break the stream", async () => {
    const watch = await watching(d, "/watch/filesystem/");
    writeFileSync(at('new\nline "q"'), "");
    writeFileSync(Buffer.concat([Buffer.from(`${d.workDir}/bad`), Buffer.of(0xff)]), "");
    await eventually(() => watch.has("CREATE", 'new\nline "q"') && watch.has("CREATE", "bad\ufffd"));
    watch.close();
  });

  await t.test("a burst of ten thousand events arrives or is told to be lost", async () => {
    const watch = await watching(d, "/watch/filesystem/");
    for (let i = 0; i < 10_000; i += 1) writeFileSync(at(`burst-${i}`), "");
    writeFileSync(at("last"), "");
    await eventually(() => watch.has("CREATE", "last") || watch.events.some((event) => event.error !== null));
    watch.close();
  });

  await t.test("refuses files and what is not there; gives its watcher back", async () => {
    writeFileSync(at("file"), "");
    assert.equal((await d.ask("GET", "/watch/filesystem/file")).status, 400);
    assert.equal((await d.ask("GET", "/watch/filesystem/none")).status, 404);
    await eventually(() => inotifyOf(d.process.pid) === 0, "no inotify instance");
  });
});
