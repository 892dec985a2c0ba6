/**
 * The files of a workload attack the copy that is made of them: links that lead out, a folder that becomes a link while
 * it is copied, and files that are no files. The copy holds files of the workload and nothing of the machine.
 */

import assert from "node:assert/strict";
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  globSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmdirSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { buffer } from "node:stream/consumers";
import { after, before, suite, test } from "node:test";
import type { LocalDriver } from "../../src/node/drivers/local/local-driver.ts";
import type { Grade } from "../../src/node/workload.ts";
import { Canary } from "../canary.ts";
import { LocalMachine, localDriverMissing, localGrades } from "../local/machine.ts";
import { run } from "../local/run.ts";
import { LONG } from "../long.ts";

const SECRET = "a-secret-of-the-machine";
const NAMES = 2000;
/** The copy is made the same way on both; where ids are mapped, less of the machine can be read. */
const GRADES: readonly Grade[] = LONG ? localGrades : localGrades.slice(-1);
const ROUNDS = LONG ? 40 : 3;

/** Puts a link in the place of a folder and the folder back, as fast as the machine can. */
const SWAP = `
  const { renameSync, symlinkSync, unlinkSync } = require("node:fs");
  const [, folder, target] = process.argv;
  process.stdout.write("begun");
  for (;;) {
    renameSync(folder, folder + ".away");
    symlinkSync(target, folder);
    unlinkSync(folder);
    renameSync(folder + ".away", folder);
  }`;

if (localDriverMissing) test("snapshots", { skip: localDriverMissing }, () => {});
else
  for (const grade of GRADES)
    suite(`a workload of grade ${grade} attacks its own snapshot`, () => {
      let machine: LocalMachine;
      let driver: LocalDriver;
      let canary: Canary;
      /** Where the disk of the workload is mounted, if it has one. */
      let shown: string | null = null;
      let upper: string;

      before(async () => {
        machine = new LocalMachine();
        driver = await machine.open({ grade });
        canary = new Canary();
        const box = await driver.create({
          uid: "box",
          name: "box",
          image: "berth/base-image:latest",
          env: {},
          limits: { memoryMb: 256, cpus: 1, pids: 128 },
          network: "closed",
        });
        mkdirSync(join(canary.dir, "names"));
        for (let n = 0; n < NAMES; n += 1) writeFileSync(join(canary.dir, "names", `f${n}`), SECRET);
        const { exitCode, output } = await run(
          box,
          `set -e; mkdir -p /hostile/names /hostile/odd; cd /hostile/names; for n in $(seq 0 ${NAMES - 1}); do echo own > f$n; done
         cd /hostile/odd; ln -s ${canary.dir} out; ln -s ${"../".repeat(20)}${canary.dir}/precious up; ln -s loop loop
         echo own > twice; ln twice twice-again; mkfifo pipe; cp /bin/true root; chmod 6755 root
         mkdir closed; echo own > closed/file; ${grade === "user" ? "" : "chmod 0 closed"}`, // without root the test could not look into the copy
        );
        assert.equal(exitCode, 0, output);
        const [disk] = globSync(join(machine.dataDir, "workloads/*/disk.img"));
        if (disk) {
          shown = mkdtempSync(join(tmpdir(), "berth-shown-"));
          execFileSync("mount", ["-o", "loop", disk, shown]);
        }
        const [hostile = ""] = globSync(join(shown ?? join(machine.dataDir, "workloads/*/fs"), "0/upper/hostile"));
        upper = dirname(hostile);
      });
      after(async () => {
        canary[Symbol.dispose]();
        if (shown) {
          execFileSync("umount", [shown]);
          rmdirSync(shown);
        }
        await driver.stop("kill");
        machine.dispose();
      });

      test("links, pipes, set-user-id and closed folders are copied as what they are", async () => {
        const { id } = await driver.capabilities.snapshots.take("box", "odd");
        const odd = join(machine.dataDir, "snapshots", id, "0/hostile/odd");
        for (const name of ["out", "up", "loop"]) assert.ok(lstatSync(join(odd, name)).isSymbolicLink(), name);
        assert.equal(lstatSync(join(odd, "twice")).ino, lstatSync(join(odd, "twice-again")).ino);
        assert.ok(lstatSync(join(odd, "pipe")).isFIFO());
        const [copied, original] = [lstatSync(join(odd, "root")), lstatSync(join(upper, "hostile/odd/root"))];
        assert.deepEqual([copied.uid, copied.mode], [original.uid, original.mode]);
        assert.equal(readFileSync(join(odd, "closed/file"), "utf8"), "own\n");
        assert.equal(lstatSync(join(machine.dataDir)).mode & 0o077, 0, "no other user reaches what root left there");
      });

      test("an export of a volume has no device, no set-id bit and no extended attribute", async (t) => {
        const { volumes, volumeCopies } = driver.capabilities;
        await volumes.create({ id: "vol", sizeMb: 16 });
        t.after(async () => {
          await driver.destroy("with-volume");
          await volumeCopies.remove("export");
        });
        const box = await driver.create({
          ...{ uid: "with-volume", name: "box", image: "berth/base-image:latest", env: {}, network: "closed" },
          limits: { memoryMb: 256, cpus: 1, pids: 128 },
          mounts: [{ source: { volume: "vol" }, path: "/vol" }],
        });
        // The kernel lets everybody make the device 0:0, which an overlay reads as "removed".
        const { exitCode, output } = await run(
          box,
          `cd /vol && cp /bin/true su && chmod 6755 su && mkdir -m 2755 dir && echo own > file && ln -s su link && ln su su-again
           mknod gone c 0 0; mknod null c 1 3; mkfifo pipe
           python3 -c 'import os; os.setxattr("su", "user.mark", b"marked")'; true`,
        );
        assert.equal(exitCode, 0, output);
        await volumeCopies.take("vol", "export");
        const tar = await buffer(await volumeCopies.pack("export"));
        const listed = execFileSync("tar", ["-tv"], { input: tar, encoding: "utf8" }).trimEnd().split("\n");
        const modes = Object.fromEntries(
          // `h`: the second name of a file, whichever that is.
          listed.map((line) => [
            line.replace(/^.*? \.\//, "").replace(/ (->|link to) .*/, ""),
            line.slice(0, 10).replace(/^h/, "-"),
          ]),
        );
        assert.deepEqual(modes, {
          ...{ "": "drwxr-xr-x", su: "-rwxr-xr-x", "dir/": "drwxr-xr-x", file: "-rw-r--r--", link: "lrwxrwxrwx" },
          "su-again": "-rwxr-xr-x",
        });
        assert.ok(!tar.includes("marked"));
        // Whatever an export sends, an import takes.
        const [archive, folder] = [join(machine.dataDir, "export.tar"), mkdtempSync(join(machine.dataDir, "import-"))];
        writeFileSync(archive, tar);
        const limits = { entriesMax: 100, bytesMax: 16 * 2 ** 20, links: true };
        await driver.capabilities.unpacking.unpack(archive, folder, limits);
        await volumeCopies.fill({ id: "imported", sizeMb: 16, from: folder });
        assert.deepEqual(readdirSync(folder).sort(), ["dir", "file", "link", "su", "su-again"]);
        assert.equal(readlinkSync(join(folder, "link")), "su");
      });

      test("a folder that becomes a link while it is copied brings nothing of the machine", async (t) => {
        // From outside, where no freezing holds the swapping back.
        const swap: ChildProcess = spawn(process.execPath, [
          "-e",
          SWAP,
          join(upper, "hostile/names"),
          join(canary.dir, "names"),
        ]);
        t.after(() => swap.kill("SIGKILL"));
        if (swap.stdout) await once(swap.stdout, "data");
        for (let round = 0; round < ROUNDS; round += 1) {
          // Files that come and go may make the copy fail; then there is none.
          await driver.capabilities.snapshots
            .take("box", `swapped-${round}`)
            .catch((error) => assert.match(String(error), /could not be copied/));
          const copied = join(machine.dataDir, "snapshots", `swapped-${round}`, "*/hostile/names{,.away}");
          // The copy of the link itself is right; only a folder may hold no copy of what is behind the link.
          for (const folder of globSync(copied).filter((each) => lstatSync(each).isDirectory()))
            for (const file of globSync(join(folder, "*")).filter((each) => lstatSync(each).isFile()))
              assert.equal(readFileSync(file, "utf8"), "own\n", file);
        }
        assert.ok(existsSync(canary.dir));
      });
    });
