/** Restore drills: commands that are killed, places that lose bytes, wrong keys, and backups that somebody forged. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import {
  copyFileSync,
  existsSync,
  globSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { loadConfig } from "../../src/config.ts";
import { cachedSandboxd } from "../../src/node/sandboxd-build.ts";
import { placeOf, writeManifest } from "../../src/operator/backup/catalogue.ts";
import { backupEverything, keyOfData, type Teller } from "../../src/operator/backup/everything.ts";
import { takePart, unitsIn } from "../../src/operator/backup/part.ts";
import { Repository, type Stored } from "../../src/operator/backup/repository/repository.ts";
import { restoreEverything } from "../../src/operator/backup/restore-everything.ts";
import { Swap } from "../../src/operator/backup/swap.ts";
import { verifyBackup } from "../../src/operator/backup/verify.ts";
import { runBerth, spawnBerth } from "../berth-process.ts";
import { startTestPlatform } from "../platform.ts";
import { openHeldDoor } from "./held-door.ts";

const quiet: Teller = { progress: () => {}, note: () => {} };
const MB = 2 ** 20;
const LARGE_BYTES = 6 * MB;

describe("backups with files", () => {
  const folder = mkdtempSync(join(tmpdir(), "berth-drills-"));
  const from = join(folder, "from");
  const drive = join(from, "runtime", "drives", "some-drive");
  const large = randomBytes(LARGE_BYTES);
  const configOf = (data: string, env: Record<string, string> = {}) => loadConfig({ flags: { data }, env });
  const backup = (target: string, env?: Record<string, string>, keep?: number) =>
    backupEverything({ config: configOf(from, env), target, keep, skipLost: false, tell: quiet });
  const verify = (target: string, env?: Record<string, string>) =>
    verifyBackup({ config: configOf(from, env), target, id: undefined, tell: quiet });
  const restore = (target: string, data: string, more: { force?: boolean; env?: Record<string, string> } = {}) =>
    restoreEverything({
      ...{ config: configOf(data, more.env), target, tell: quiet },
      ...{ id: undefined, node: undefined, filesOnly: false, force: more.force ?? false },
    });
  const machine = (name: string): string => {
    const data = join(folder, name);
    // The daemon, of a hundred megabytes, is there once for all restores.
    const bin = join(data, "runtime", "bin");
    mkdirSync(bin, { recursive: true });
    for (const name of readdirSync(join(folder, "bin"))) linkSync(join(folder, "bin", name), join(bin, name));
    copyFileSync(join(from, "secret.key"), join(data, "secret.key"));
    return data;
  };
  const drivesOf = async (dataDir: string): Promise<string[]> => {
    await using platform = await startTestPlatform({ dataDir });
    return (await platform.call("GET", "/drives")).body.data.map(
      (each: { metadata: { name: string } }) => each.metadata.name,
    );
  };

  before(async () => {
    const platform = await startTestPlatform({ dataDir: from });
    await platform.call("POST", "/drives", { body: { metadata: { name: "shared" }, spec: {} } });
    await platform.stop();
    await cachedSandboxd(join(folder, "bin"));
    mkdirSync(drive, { recursive: true });
    writeFileSync(join(drive, "large"), large);
    symlinkSync("/etc/passwd", join(drive, "link"));
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  const isChunk = (method: string) => (asked: string, path: string) => asked === method && path.includes("/chunks/");

  test("a backup that is killed leaves none, and the next one goes on", async () => {
    await using door = await openHeldDoor(join(folder, "killed-door"));
    const target = "s3://bucket/killed";
    const held = door.holdAfter(3, isChunk("PUT"));
    const killed = spawnBerth(["backup", "--files", target], { env: { BERTH_DATA: from, ...door.env } });
    await held;
    killed.child.kill("SIGKILL");
    await killed.ended;
    door.letPass();
    await assert.rejects(verify(target, door.env), /no whole backup/);
    const [line = ""] = await backup(target, door.env);
    assert.match(line, /the database and \d+ folders of 1 node/);
    const options = { env: { BERTH_DATA: from, ...door.env } };
    const [listed, verified] = await Promise.all([
      runBerth(["backup", "list", target], options),
      runBerth(["backup", "verify", target], options),
    ]);
    const [id = ""] = line.split(":");
    assert.match(listed.stdout, /^ID +DATE +SIZE +VERSION +NODES\n\S+ +\d{4}-\d\d-\d\d \d\d:\d\d UTC +[\d.]+ MB +\d/);
    assert.deepEqual([listed.stdout.includes(id), verified.stdout.includes(`${id}: whole`)], [true, true]);
  });

  test("two backups at once are refused", async () => {
    const target = join(folder, "locked");
    const repository = new Repository(placeOf(configOf(from), target), keyOfData(configOf(from)));
    const lock = await repository.lock();
    await assert.rejects(backup(target), /Another backup is being written to .* by process \d+/);
    await lock.release();
  });

  test("old backups go, and take nothing along that others need", async () => {
    const target = join(folder, "pruned");
    await backup(target);
    writeFileSync(join(drive, "later"), randomBytes(MB));
    await backup(target);
    const both = globSync(join(target, "*/chunks/*/*")).length;
    rmSync(join(drive, "later"));
    await backup(target, {}, 1);
    assert.equal(globSync(join(target, "*/backups/*")).length, 1);
    assert.ok(globSync(join(target, "*/chunks/*/*")).length < both, "chunks that nothing needs are gone");
    await verify(target);
    const to = machine("pruned-to");
    await restore(target, to);
    assert.ok(readFileSync(join(to, "runtime/drives/some-drive/large")).equals(large));
  });

  test("a chunk that is cut, changed or gone is told, and nothing is restored", async () => {
    const target = join(folder, "damaged");
    await backup(target);
    const chunks = globSync(join(target, "*/chunks/*/*")).sort();
    const damages: [string, (file: string) => void, RegExp][] = [
      ["cut", (file) => truncateSync(file, 1000), /is cut off or was changed/],
      ["emptied", (file) => truncateSync(file, 0), /is cut off or was changed/],
      [
        "changed",
        (file) => {
          const bytes = readFileSync(file);
          bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 1;
          writeFileSync(file, bytes);
        },
        /is cut off or was changed/,
      ],
      ["replaced by another", (file) => copyFileSync(chunks.find((one) => one !== file) ?? "", file), /changed/],
      ["gone", (file) => rmSync(file), /is missing/],
    ];
    const [repository, part] = await partIn(target);
    let name = "";
    for await (const unit of unitsIn(repository, part))
      if (unit.folder === "runtime/drives") name = unit.tar.chunks[3] ?? "";
    const file = chunks.find((one) => one.endsWith(name)) ?? assert.fail();
    const whole = readFileSync(file);
    const to = machine("damaged-to");
    for (const [title, damage, says] of damages) {
      damage(file);
      await assert.rejects(verify(target), says, title);
      await assert.rejects(verify(target), /runtime\/drives\/some-drive/, title);
      if (title === "cut") await assert.rejects(restore(target, to), says, title);
      assert.deepEqual(
        readdirSync(to).filter((entry) => /restoring|sqlite$|node\.json/.test(entry)),
        [],
        title,
      );
      if (existsSync(join(to, "runtime"))) assert.deepEqual(readdirSync(join(to, "runtime")), ["bin"], title);
      writeFileSync(file, whole);
    }
    await restore(target, to);
  });

  async function partIn(target: string) {
    const repository = new Repository(placeOf(configOf(from), target), keyOfData(configOf(from)));
    const progress = { read: () => {}, sent: () => {}, unit: () => {} };
    return [repository, await takePart({ repository, backup: "look", dataDir: from, progress })] as const;
  }

  test("another key opens nothing, and the message names the right one", async () => {
    const target = join(folder, "sealed");
    await backup(target);
    const to = join(folder, "sealed-to");
    mkdirSync(to);
    await assert.rejects(restore(target, to), /sealed with the key [0-9a-f]{16}, and there is no key here/);
    writeFileSync(join(to, "secret.key"), "ab".repeat(32));
    await assert.rejects(restore(target, to), /sealed with the key [0-9a-f]{16}, but .*secret\.key is/);
    // Renamed to that of the wrong key, the chunks still do not open.
    const [right = ""] = readdirSync(join(target, "keys"));
    const wrong = new Repository(placeOf(configOf(to), target), keyOfData(configOf(to))).fingerprint;
    spawnSync("mv", [join(target, right), join(target, wrong)]);
    spawnSync("mv", [join(target, "keys", right), join(target, "keys", wrong)]);
    await assert.rejects(restore(target, to), /is cut off or was changed/);
  });

  test("a restore that is killed has changed nothing, or keeps servers out until it is run again", async () => {
    await using door = await openHeldDoor(join(folder, "restored-door"));
    const target = "s3://bucket/restored";
    await backup(target, door.env);
    const to = machine("killed-to");
    const held = door.holdAfter(3, isChunk("GET"));
    const killed = spawnBerth(["restore", target], { env: { BERTH_DATA: to, ...door.env } });
    await held;
    killed.child.kill("SIGKILL");
    await killed.ended;
    door.letPass();
    assert.deepEqual(await drivesOf(to), [], "a server starts on what was there");
    // Killed after the first move: files are new, records old.
    const swap = new Swap(to);
    await swap.undo();
    mkdirSync(join(swap.staged, "files", "runtime", "drives", "half"), { recursive: true });
    await swap.begin({ id: "node-x", name: "x" });
    assert.ok(existsSync(join(to, "runtime/drives/half")));
    const refused = await spawnBerth(["up", "--port", "0"], { env: { BERTH_DATA: to } }).ended;
    assert.match(refused.stderr, /A restore into .* did not end.*Run `berth restore` again/);
    await restore(target, to, { env: door.env });
    assert.deepEqual(readdirSync(join(to, "runtime/drives")), ["some-drive"]);
    assert.deepEqual(await drivesOf(to), ["shared"]);
  });

  test("a data folder with files is replaced only with --force, and a restore that fails leaves it", async () => {
    const target = join(folder, "forced");
    await backup(target);
    const to = machine("forced-to");
    mkdirSync(join(to, "runtime/drives/mine"), { recursive: true });
    writeFileSync(join(to, "runtime/drives/mine/note"), "mine");
    await assert.rejects(restore(target, to), /is not empty/);
    const [manifest = ""] = globSync(join(target, "*/backups/*"));
    const whole = readFileSync(manifest);
    truncateSync(manifest, 10);
    await assert.rejects(restore(target, to, { force: true }), /cut off or was changed/);
    writeFileSync(manifest, whole);
    assert.equal(readFileSync(join(to, "runtime/drives/mine/note"), "utf8"), "mine");
    await restore(target, to, { force: true });
    assert.deepEqual(readdirSync(join(to, "runtime/drives")), ["some-drive"]);
  });

  test("a backup that was forged with the right key changes nothing outside of its folder", async () => {
    const outside = join(folder, "outside");
    writeFileSync(outside, "untouched");
    const build = join(folder, "forge");
    mkdirSync(join(build, "in"), { recursive: true });
    writeFileSync(join(build, "in", "file"), "bad");
    symlinkSync(folder, join(build, "way"));
    const tar = (...args: string[]): Buffer => spawnSync("tar", ["-c", "-P", "-C", build, ...args]).stdout;
    // First a link to another folder, then a file by way of it.
    const through = Buffer.concat([
      tar("--no-recursion", "way").subarray(0, 512),
      tar("--transform=s,in/file,way/outside,", "in/file"),
    ]);
    const forgeries: [string, { folder: string; name: string; tar: Buffer }][] = [
      [
        "a path upwards",
        { folder: "runtime/drives", name: "d", tar: tar("--transform=s,in/file,../../../../../outside,", "in/file") },
      ],
      [
        "an absolute path",
        { folder: "runtime/drives", name: "d", tar: tar(`--transform=s,in/file,${outside},`, "in/file") },
      ],
      ["a path by way of a link", { folder: "runtime/drives", name: "d", tar: through }],
      ["a name upwards", { folder: "runtime/drives", name: "../../../d", tar: tar("in") }],
      ["a folder of its own choice", { folder: "../outside", name: "d", tar: tar("in") }],
      ["a record that shows the machine", record(["/etc"])],
      ["a record that climbs", record([join(from, "runtime", "images", "..", "..")])],
    ];
    function record(lowers: string[]) {
      writeFileSync(join(build, "record.json"), JSON.stringify({ parts: [{ at: "/", lowers }], cgroup: {} }));
      return { folder: "runtime/workloads", name: "w", tar: tar("record.json") };
    }
    for (const [index, [title, forged]] of forgeries.entries()) {
      const target = join(folder, `forged-${index}`);
      await forge(target, forged);
      const to = machine(`forged-to-${index}`);
      await restore(target, to).catch((error: Error) => assert.match(error.message, /damaged/, title));
      assert.equal(readFileSync(outside, "utf8"), "untouched", title);
      assert.ok(!existsSync(join(folder, "d")) && !existsSync(join(to, "d")), title);
      assert.ok(!existsSync(join(to, "runtime/workloads/w")), title);
    }
  });

  async function forge(target: string, unit: { folder: string; name: string; tar: Buffer }): Promise<void> {
    const repository = new Repository(placeOf(configOf(from), target), keyOfData(configOf(from)));
    const progress = { read: () => {}, sent: () => {} };
    const store = (bytes: Buffer): Promise<Stored> => repository.write(piecesOf(bytes), progress);
    await repository.prepare();
    const node = { id: "node-forged", name: "forged" };
    const line = JSON.stringify({ ...unit, stamp: "", tar: await store(unit.tar) });
    const index = await store(Buffer.from(`${line}\n`));
    const word = createHash("sha256").update(node.id).digest("hex").slice(0, 32);
    await repository.writeNote(`parts/forged/${word}`, { node, dataDir: from, units: 1, index });
    const database = await store(Buffer.from("no rows"));
    await writeManifest(repository, { id: "forged", createdAt: "", version: "0", database, nodes: [node] });
  }
  async function* piecesOf(bytes: Buffer): AsyncGenerator<Buffer> {
    yield bytes;
  }

  test("a bucket of an S3 server is as good as a folder", async () => {
    await using door = await openHeldDoor(join(folder, "door"));
    const { env } = door;
    const target = "s3://bucket/some/prefix";
    await backup(target, env);
    const [line = ""] = await backup(target, env, 1);
    assert.match(line, /read here, \d+(\.\d)? K?B sent/);
    await verify(target, env);
    const to = machine("s3-to");
    await restore(target, to, { env });
    assert.ok(readFileSync(join(to, "runtime/drives/some-drive/large")).equals(large));
    await assert.rejects(backup(target, { ...env, AWS_SECRET_ACCESS_KEY: "wrong" }), /403.*SignatureDoesNotMatch/);
    await assert.rejects(backup(target, {}), /needs credentials/);
    for (const bad of ["s3://", "s3://UPPER", "s3://bucket/../other"])
      await assert.rejects(backup(bad, env), /is no place in S3/);
  });
});
