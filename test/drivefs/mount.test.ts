/** Programs use a mounted drive of another node as they use any folder. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import * as fs from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { type DriveOwner, fuseMissing, openDriveOwner } from "./mounted.ts";

describe("a mounted drive", { skip: fuseMissing }, () => {
  let owner: DriveOwner;
  before(async () => {
    owner = await openDriveOwner();
  });
  after(() => owner[Symbol.asyncDispose]());

  test("files are made, read, changed, renamed and removed on both sides", async () => {
    const here = await owner.mount();
    const there = owner.files;
    fs.writeFileSync(join(here, "a"), "one");
    assert.equal(fs.readFileSync(join(there, "a"), "utf8"), "one");
    fs.writeFileSync(join(there, "a"), "two, longer");
    assert.equal(fs.readFileSync(join(here, "a"), "utf8"), "two, longer");
    fs.appendFileSync(join(here, "a"), "!");
    fs.mkdirSync(join(here, "folder/below"), { recursive: true });
    fs.renameSync(join(here, "a"), join(here, "folder/below/b"));
    assert.equal(fs.readFileSync(join(there, "folder/below/b"), "utf8"), "two, longer!");
    fs.renameSync(join(there, "folder"), join(there, "moved"));
    assert.equal(fs.readFileSync(join(here, "moved/below/b"), "utf8"), "two, longer!");
    assert.throws(() => fs.statSync(join(here, "folder")), { code: "ENOENT" });
    fs.truncateSync(join(here, "moved/below/b"), 3);
    assert.equal(fs.statSync(join(there, "moved/below/b")).size, 3);
    fs.symlinkSync("b", join(here, "moved/below/link"));
    assert.equal(fs.readFileSync(join(here, "moved/below/link"), "utf8"), "two");
    fs.linkSync(join(here, "moved/below/b"), join(here, "hard"));
    assert.equal(fs.statSync(join(here, "hard")).nlink, 2);
    assert.throws(() => fs.rmdirSync(join(here, "moved")), { code: "ENOTEMPTY" });
    fs.rmSync(join(here, "moved"), { recursive: true });
    assert.deepEqual(fs.readdirSync(there), ["hard"]);
    assert.ok(fs.statfsSync(here).blocks > 0);
  });

  test("names are bytes, folders may be large, and a big file is the same on both sides", async () => {
    const here = await owner.mount();
    const odd = Buffer.concat([Buffer.from(`${here}/`), Buffer.from([0xff, 0x20, 0x0a, 0xc3])]);
    fs.writeFileSync(odd, "odd");
    assert.deepEqual(fs.readdirSync(owner.files, { encoding: "buffer" }).filter((name) => name[0] === 0xff).length, 1);
    assert.equal(fs.readFileSync(odd, "utf8"), "odd");
    fs.mkdirSync(join(owner.files, "many"));
    const names = Array.from({ length: 3000 }, (_, n) => `file-${n}`);
    for (const name of names) fs.writeFileSync(join(owner.files, "many", name), "");
    assert.deepEqual(fs.readdirSync(join(here, "many")).sort(), names.sort());
    const twice = `opendir D, $ARGV[0]; readdir D for 1 .. 1500; my $at = telldir D; my $next = readdir D; my @rest = readdir D;
      rewinddir D; my @all = readdir D; seekdir D, $at; print scalar(@all), " ", $next eq readdir D`;
    const { stdout, stderr } = spawnSync("perl", ["-e", twice, join(here, "many")], { encoding: "utf8" });
    assert.equal(stdout, "3002 1", stderr);
    assert.throws(() => fs.writeFileSync(join(here, "n".repeat(256)), ""), { code: "ENAMETOOLONG" });
    const bytes = randomBytes(20 * 2 ** 20 + 123);
    fs.writeFileSync(join(here, "big"), bytes);
    assert.ok(fs.readFileSync(join(owner.files, "big")).equals(bytes));
    assert.ok(fs.readFileSync(join(here, "big")).equals(bytes));
  });

  test("two mounts see each other's files once these are closed, and appends of both are kept", async () => {
    const [one, other] = [await owner.mount(), await owner.mount({ path: "/shared" })];
    fs.writeFileSync(join(other, "file"), "first");
    assert.equal(fs.readFileSync(join(one, "shared/file"), "utf8"), "first");
    fs.writeFileSync(join(one, "shared/file.next"), "second");
    fs.renameSync(join(one, "shared/file.next"), join(one, "shared/file"));
    assert.equal(fs.readFileSync(join(other, "file"), "utf8"), "second");
    const [a, b] = [fs.openSync(join(one, "shared/log"), "a"), fs.openSync(join(other, "log"), "a")];
    for (let n = 0; n < 20; n++) for (const fd of [a, b]) fs.writeSync(fd, "x");
    for (const fd of [a, b]) fs.closeSync(fd);
    assert.equal(fs.statSync(join(owner.files, "shared/log")).size, 40);
    assert.throws(() => fs.statSync(join(other, "../file")), { code: "ENOENT" });
  });

  test("owners, modes and times are those of the drive; devices and set-id programs are not made", async () => {
    const here = await owner.mount();
    const file = join(here, "owned");
    fs.writeFileSync(file, "", { mode: 0o640 });
    fs.chownSync(file, 1234, 4321);
    fs.utimesSync(file, 1_000_000, 2_000_000);
    const { uid, gid, mode, mtimeMs } = fs.statSync(join(owner.files, "owned"));
    assert.deepEqual([uid, gid, mode & 0o7777, mtimeMs], [1234, 4321, 0o640, 2_000_000_000]);
    for (const bits of [0o4755, 0o2755]) assert.throws(() => fs.chmodSync(file, bits), { code: "EPERM" });
    const run = (command: string): string => {
      const { status, stderr } = spawnSync("sh", ["-c", command], { cwd: here, encoding: "utf8" });
      return status === 0 ? "done" : stderr;
    };
    assert.match(run("mknod device b 7 0"), /not permitted/);
    assert.match(run("mkfifo pipe"), /not permitted/);
    assert.equal(run("mkdir group && chgrp 4321 group && chmod 2775 group && touch group/file"), "done");
    assert.equal(fs.statSync(join(owner.files, "group/file")).gid, 4321);
  });

  test("mounts that wait for a server which is away hold nothing else up", async () => {
    await owner.kill();
    let mounted = 0;
    const mounts = Array.from({ length: 6 }, async (_, n) => {
      await owner.mount({ path: `/away${n}` });
      mounted += 1;
    });
    while ((fs.readFileSync("/proc/self/mountinfo", "utf8").match(/berth-drive/g)?.length ?? 0) < mounts.length)
      await nextTurn();
    for (let n = 0; n < 20; n++) await fs.promises.readdir(owner.files);
    assert.equal(mounted, 0);
    await owner.start();
    await Promise.all(mounts);
  });

  test("a drive with many mounts leaves room for those of others", async () => {
    await using few = await openDriveOwner({ mountsMax: 5 });
    for (const path of ["/1", "/2", "/3"]) await few.mount({ path });
    await assert.rejects(few.mount({ path: "/4" }), /too many mounts/);
    await few.mount({ drive: "other" });
  });

  test("a killed program ends while the server that has its files does not answer", async (t) => {
    const here = await owner.mount();
    fs.writeFileSync(join(here, "frozen"), "");
    const own = fs.openSync(join(here, "frozen"), "r");
    owner.freeze(true);
    t.after(() => owner.freeze(false));
    const waits = async (): Promise<ChildProcess> => {
      const child = spawn("cat", [join(here, "frozen")], { stdio: "ignore" });
      while (!/fuse|request_wait/.test(fs.readFileSync(`/proc/${child.pid}/wchan`, "utf8"))) await nextTurn();
      return child;
    };
    const [patient, killed] = [await waits(), await waits()];
    fs.closeSync(own); // answered by the process of the mount, which has read both questions by then
    const ended = once(killed, "exit");
    killed.kill("SIGKILL");
    await ended;
    assert.equal(patient.exitCode, null);
    owner.freeze(false);
    assert.deepEqual(await once(patient, "exit"), [0, null]);
  });

  test("a mount that only reads changes nothing, whoever asks", async () => {
    fs.writeFileSync(join(owner.files, "fixed"), "as it was");
    const here = await owner.mount({ readOnly: true });
    assert.equal(fs.readFileSync(join(here, "fixed"), "utf8"), "as it was");
    for (const change of [
      () => fs.writeFileSync(join(here, "fixed"), "else"),
      () => fs.writeFileSync(join(here, "new"), ""),
      () => fs.unlinkSync(join(here, "fixed")),
      () => fs.mkdirSync(join(here, "folder")),
      () => fs.chmodSync(join(here, "fixed"), 0o777),
      () => fs.renameSync(join(here, "fixed"), join(here, "other")),
    ])
      assert.throws(change, { code: "EROFS" });
    assert.equal(fs.readFileSync(join(owner.files, "fixed"), "utf8"), "as it was");
  });

  test("a process of the mount that is killed is replaced, and the mount goes on", async () => {
    const here = await owner.mount({ path: "/killed" });
    fs.writeFileSync(join(here, "file"), "kept");
    process.kill(servingPid("/killed"), "SIGKILL");
    assert.equal(fs.readFileSync(join(here, "file"), "utf8"), "kept");
    fs.writeFileSync(join(here, "file"), "new");
    assert.equal(fs.readFileSync(join(owner.files, "killed/file"), "utf8"), "new");
  });

  test("open files go on when the server that has them is killed and returns; what is gone is stale", async () => {
    const here = await owner.mount();
    const fd = fs.openSync(join(here, "open"), "w+");
    fs.writeSync(fd, "before");
    await owner.kill();
    await owner.start();
    fs.writeSync(fd, " after");
    assert.equal(fs.readFileSync(join(owner.files, "open"), "utf8"), "before after");
    fs.unlinkSync(join(owner.files, "open"));
    await owner.kill();
    await owner.start();
    assert.throws(() => fs.readSync(fd, Buffer.alloc(1), 0, 1, 0), { errno: -constants.errno.ESTALE });
    fs.closeSync(fd);
    fs.writeFileSync(join(here, "again"), "here");
    assert.equal(fs.readFileSync(join(owner.files, "again"), "utf8"), "here");
  });
});

/** The process that serves the mount of this part of the drive. */
function servingPid(path: string): number {
  const [pid] = fs
    .readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      try {
        const words = fs.readFileSync(`/proc/${name}/cmdline`, "utf8");
        return words.includes("drive-mount.js") && words.includes(`"path":"${path}"`);
      } catch {
        return false; // it has ended
      }
    });
  return Number(pid);
}
