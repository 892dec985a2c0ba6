/**
 * What every driver must do, as tests. A driver's own test file calls `driverConformance` with a way to make one and
 * to look inside its workloads. Differences between drivers are capabilities in the harness, never other expectations.
 */

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { gzipSync } from "node:zlib";
import { dial } from "./dial/dial.ts";
import type { Driver, Observed, WorkloadSpec } from "./driver.ts";

export interface Harness {
  driver: Driver;
  image: string;
  /** Files inside a workload, by absolute path as seen inside. */
  read(workload: Observed, path: string): Promise<string>;
  write(workload: Observed, path: string, text: string): Promise<void>;
  /** Files that each command has to itself. */
  ownFiles: readonly string[];
  /** The server ends, leaving workloads alone, and a new one starts on the same machine. */
  restart(): Promise<Driver>;
  dispose(): Promise<void>;
}

let counter = 0;
const uid = (): string => `conform-${process.pid}-${counter++}`;

export function driverConformance(name: string, open: () => Promise<Harness>): void {
  suite(`${name} driver`, { timeout: 540_000 }, () => {
    let harness: Harness;
    const made: string[] = [];
    before(async () => {
      harness = await open();
    });
    after(async () => {
      for (const each of made) await harness.driver.destroy(each);
      await harness.dispose();
    });
    const spec = (more: Partial<WorkloadSpec> = {}): WorkloadSpec => {
      const id = more.uid ?? uid();
      made.push(id);
      const limits = { memoryMb: 256, cpus: 1 };
      return { uid: id, name: "box", image: harness.image, env: {}, limits, network: "closed", ...more };
    };
    lifecycle(() => harness, spec);
    suite("a command", () => exits(() => harness, spec));
    suite("a command alone", () => {
      const alone: Make = (more = {}) =>
        spec({ ...more, ...(more.exec ? { exec: { ...more.exec, alone: true } } : {}) });
      exits(() => harness, alone);
      aloneOnly(() => harness, alone);
    });
    storage(() => harness, spec);
    survival(() => harness, spec);
  });
}

type Make = (more?: Partial<WorkloadSpec>) => WorkloadSpec;
type Get = () => Harness;

function lifecycle(get: Get, spec: Make): void {
  test("the probe answers honestly and at once", async () => {
    const probe = await get().driver.probe();
    assert.ok(["mapped", "contained", "user", "none"].includes(probe.grade));
    if (probe.grade !== "mapped") assert.notDeepEqual(probe.missing, []);
  });

  test("create answers with a reachable workload, and the same one the second time", async () => {
    const { driver } = get();
    const wanted = spec();
    const first = await driver.create(wanted);
    assert.equal(first.state, "running");
    assert.equal(first.node, driver.node);
    assert.equal((await call(first, "/health")).status, 200);
    const second = await driver.create(wanted);
    assert.equal(second.pid, first.pid);
    assert.deepEqual(second.endpoint, first.endpoint);
    assert.deepEqual(await driver.observe(wanted.uid), second);
    assert.ok((await driver.list()).some((each) => each.uid === wanted.uid));
    assert.deepEqual(structuredClone(second), JSON.parse(JSON.stringify(second)), "an observation is plain data");
  });

  test("concurrent creates of one uid make one workload", async () => {
    const { driver } = get();
    const wanted = spec();
    const all = await Promise.all([driver.create(wanted), driver.create(wanted), driver.create(wanted)]);
    assert.equal(new Set(all.map(({ pid }) => pid)).size, 1);
  });

  test("an unknown image is refused and leaves nothing", async () => {
    const { driver } = get();
    const wanted = spec({ image: "nobody/knows:this" });
    await assert.rejects(driver.create(wanted), { code: "bad_request" });
    assert.equal(await driver.observe(wanted.uid), null);
    assert.equal(await driver.findImage("nobody/knows:this"), null);
    assert.equal(await driver.imageBytes("nobody/knows:this"), null);
  });

  test("freeze holds it, thaw lets it answer again, both twice", async () => {
    const { driver } = get();
    const made = await driver.create(spec());
    for (let round = 0; round < 2; round++) assert.equal((await driver.freeze(made.uid)).state, "frozen");
    assert.equal((await driver.observe(made.uid))?.state, "frozen");
    for (let round = 0; round < 2; round++) assert.equal((await driver.thaw(made.uid)).state, "running");
    assert.equal((await call(made, "/health")).status, 200);
  });

  test("limits change in place and stats are numbers", async () => {
    const { driver } = get();
    const made = await driver.create(spec());
    await driver.setLimits(made.uid, { memoryMb: 300, cpus: 0.5 });
    assert.equal((await driver.observe(made.uid))?.limits.memoryMb, 300);
    const stats = await driver.stats(made.uid);
    assert.ok(stats.memoryBytes > 0 && stats.cpuMs >= 0 && stats.pids >= 1);
  });

  test("destroy removes it, also when frozen, also twice", async () => {
    const { driver } = get();
    const made = await driver.create(spec());
    await driver.freeze(made.uid);
    await driver.destroy(made.uid);
    await driver.destroy(made.uid);
    assert.equal(await driver.observe(made.uid), null);
    assert.equal(await driver.waitExit(made.uid), null);
    await assert.rejects(dial(made.endpoint, "api"), { code: "bad_gateway" });
    await assert.rejects(driver.freeze(made.uid), { code: "not_found" });
  });

  test("an aborted create leaves nothing", async () => {
    const { driver } = get();
    const wanted = spec();
    await assert.rejects(driver.create(wanted, { signal: AbortSignal.abort(new Error("gone")) }), /gone/);
    assert.equal(await driver.observe(wanted.uid), null);
  });
}

function exits(get: Get, spec: Make): void {
  test("a command's exit code is observed", async () => {
    const { driver } = get();
    const wanted = spec({ exec: { argv: ["sh", "-c", 'exit "$CODE"'] }, env: { CODE: "7" } });
    await driver.create(wanted);
    const ended = await driver.waitExit(wanted.uid);
    assert.equal(ended?.state, "exited");
    assert.equal(ended?.exitCode, 7);
    assert.equal((await driver.observe(wanted.uid))?.exitCode, 7);
    assert.equal((await driver.create(wanted)).state, "exited", "an ended workload is not started again");
    await assert.rejects(driver.freeze(wanted.uid), { code: "conflict" });
  });

  test("what a command writes can be read, also after its end", async () => {
    const { driver } = get();
    const wanted = spec({ exec: { argv: ["sh", "-c", "echo out; echo err >&2"] } });
    await driver.create(wanted);
    await driver.waitExit(wanted.uid);
    const { bytes, size } = await driver.readOutput(wanted.uid, "stdout", 1, 100);
    assert.deepEqual([bytes.toString(), size], ["ut\n", 4]);
    assert.equal((await driver.readOutput(wanted.uid, "stderr", 0, 2)).bytes.toString(), "er");
  });

  test("a destroy leaves a last look at the output, once nothing runs any more", async () => {
    const { driver } = get();
    const wanted = spec({ exec: { argv: ["sh", "-c", "echo begun; exec sleep 600"] } });
    await driver.create(wanted);
    let seen: Observed | null = null;
    let said = "";
    const ended = async (): Promise<void> => {
      seen = await driver.observe(wanted.uid);
      said = (await driver.readOutput(wanted.uid, "stdout", 0, 100)).bytes.toString();
    };
    await driver.destroy(wanted.uid, { ended });
    assert.equal((seen as Observed | null)?.state, "exited");
    assert.match(said, /^(begun\n)?$/);
    assert.equal(await driver.observe(wanted.uid), null);
  });

  test("a command that does not exist ends with 127", async () => {
    const { driver } = get();
    const wanted = spec({ exec: { argv: ["no-such-program-here"] } });
    await driver.create(wanted);
    assert.equal((await driver.waitExit(wanted.uid))?.exitCode, 127);
  });

  test("a command ends by itself at its time", async () => {
    const { driver } = get();
    const script = ["sh", "-c", "echo started; sleep 600"];
    const late = spec({ exec: { argv: script, endsAtMs: Date.now() - 1 } });
    await driver.create(late);
    assert.notEqual((await driver.waitExit(late.uid))?.exitCode, 0);
    assert.equal((await driver.readOutput(late.uid, "stdout", 0, 100)).size, 0, "it never ran");
    const running = spec({ exec: { argv: script, endsAtMs: Date.now() + 600_000 } });
    assert.equal((await driver.create(running)).state, "running");
    await driver.prolong(running.uid, Date.now() - 1);
    const ended = await driver.waitExit(running.uid);
    assert.equal(ended?.state, "exited");
    assert.notEqual(ended?.exitCode, 0);
    await driver.prolong(running.uid, Date.now() + 600_000);
    await driver.prolong("nobody-knows-this", Date.now());
  });

  test("waiting for an exit ends with the signal or with destroy", async () => {
    const { driver } = get();
    const made = await driver.create(spec());
    await assert.rejects(driver.waitExit(made.uid, { signal: AbortSignal.timeout(20) }), { name: "TimeoutError" });
    const running = await driver.create(spec({ exec: { argv: ["sleep", "600"] } }));
    const waiting = driver.waitExit(running.uid);
    await driver.destroy(running.uid);
    const outcome = await waiting;
    assert.ok(outcome === null || outcome.state === "exited");
  });
}

function aloneOnly(get: Get, spec: Make): void {
  test("a signal that ends a command is told, and a destroy asks before it forces", async () => {
    const { driver } = get();
    const killed = spec({ exec: { argv: ["sh", "-c", "kill -9 $$"] } });
    await driver.create(killed);
    const { exitCode, exitSignal } = (await driver.waitExit(killed.uid)) ?? {};
    assert.ok(exitSignal === "SIGKILL" || exitCode === 137);
    const polite = spec({
      exec: { argv: ["sh", "-c", "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.02; done"] },
    });
    await driver.create(polite);
    const said = async (): Promise<string> => (await driver.readOutput(polite.uid, "stdout", 0, 100)).bytes.toString();
    while (!(await said()).startsWith("up\n")) await new Promise((resolve) => setTimeout(resolve, 5));
    let last = "";
    const ended = async (): Promise<void> => {
      last = await said();
    };
    await driver.destroy(polite.uid, { graceMs: 60_000, ended });
    assert.equal(last, "up\nbye\n");
  });

  test("what one command has left is not there for the next", async () => {
    const { driver, ownFiles } = get();
    for (let round = 0; round < 3; round += 1) {
      const isNew = ownFiles.map((file) => `test ! -e ${file}`).join(" && ");
      const argv = ["sh", "-c", `${isNew} && echo x | tee ${ownFiles.join(" ")} >&2`];
      const wanted = spec({ exec: { argv } });
      await driver.create(wanted);
      assert.equal((await driver.waitExit(wanted.uid))?.exitCode, 0);
      assert.equal((await driver.readOutput(wanted.uid, "stderr", 0, 100)).bytes.toString(), "x\n");
      await driver.destroy(wanted.uid);
    }
  });

  test("an aborted create of a command leaves nothing", async () => {
    const { driver } = get();
    const wanted = spec({ exec: { argv: ["sleep", "600"] } });
    const abort = new AbortController();
    const creating = driver.create(wanted, { signal: abort.signal });
    abort.abort(new Error("gone"));
    await creating.then(
      () => driver.destroy(wanted.uid),
      (error: Error) => assert.match(error.message, /gone/),
    );
    assert.equal(await driver.observe(wanted.uid), null);
  });

  test("commands start and end beside each other", async () => {
    const { driver } = get();
    const all = Array.from({ length: 12 }, (_, n) => spec({ exec: { argv: ["sh", "-c", `exit ${n}`] } }));
    await Promise.all(all.map((each) => driver.create(each)));
    const codes = await Promise.all(all.map(async (each) => (await driver.waitExit(each.uid))?.exitCode));
    assert.deepEqual(
      codes,
      all.map((_, n) => n),
    );
    await Promise.all(all.map((each) => driver.destroy(each.uid)));
  });
}

function storage(get: Get, spec: Make): void {
  test("a volume outlives its workload and serves one at a time", async () => {
    const { driver, read, write } = get();
    const from = mkdtempSync(join(tmpdir(), "seed-"));
    writeFileSync(join(from, "seed.txt"), "planted");
    const id = uid();
    const volume = await driver.createVolume({ id, sizeMb: 16, from });
    rmSync(from, { recursive: true });
    assert.deepEqual({ ...(await driver.createVolume({ id, sizeMb: 16 })), usedBytes: 0 }, { ...volume, usedBytes: 0 });
    const mounts = [{ source: { volume: id }, path: "/data" }];
    const first = await driver.create(spec({ mounts }));
    assert.equal(await read(first, "/data/seed.txt"), "planted");
    await write(first, "/data/kept.txt", "still here");
    await assert.rejects(driver.create(spec({ mounts })), { code: "conflict" });
    await assert.rejects(driver.destroyVolume(id), { code: "conflict" });
    await driver.destroy(first.uid);
    const second = await driver.create(spec({ mounts }));
    assert.equal(await read(second, "/data/kept.txt"), "still here");
    await driver.destroy(second.uid);
    await driver.destroyVolume(id);
    assert.equal(await driver.observeVolume(id), null);
  });

  test("a drive is shared, mounted and unmounted while running", async () => {
    const { driver, read, write } = get();
    const id = uid();
    await driver.createDrive(id);
    const [one, two] = [await driver.create(spec()), await driver.create(spec())];
    const mount = { source: { drive: id }, path: "/mnt/shared/deep" };
    for (const { uid: each } of [one, two, one]) await driver.mount(each, mount);
    assert.equal(await driver.driveBytes(uid()), null);
    const empty = (await driver.driveBytes(id)) ?? 0;
    await write(one, "/mnt/shared/deep/note", "hello".repeat(100_000));
    assert.ok(((await driver.driveBytes(id)) ?? 0) >= empty + 500_000, "what it holds can be told");
    await write(one, "/mnt/shared/deep/note", "hello");
    assert.equal(await read(two, "/mnt/shared/deep/note"), "hello");
    assert.deepEqual((await driver.observe(one.uid))?.mounts, [mount]);
    const other = uid();
    await driver.createDrive(other);
    await assert.rejects(driver.mount(one.uid, { source: { drive: other }, path: mount.path }), { code: "conflict" });
    assert.equal(await driver.unmount(one.uid, mount.path), true);
    assert.equal(await driver.unmount(one.uid, mount.path), false);
    await assert.rejects(read(one, "/mnt/shared/deep/note"));
    assert.equal(await read(two, "/mnt/shared/deep/note"), "hello");
    await driver.destroy(two.uid);
    await driver.destroyDrive(id);
    await driver.destroyDrive(other);
  });

  test("a drive starts with the files of a folder, once", async () => {
    const { driver, read, write } = get();
    const id = uid();
    const from = mkdtempSync(join(tmpdir(), "seed-"));
    writeFileSync(join(from, "seed.txt"), "planted");
    await driver.createDrive(id, { from });
    writeFileSync(join(from, "seed.txt"), "too late");
    await driver.createDrive(id, { from });
    rmSync(from, { recursive: true });
    const mounts = [{ source: { drive: id }, path: "/code" }];
    const one = await driver.create(spec({ mounts }));
    assert.equal(await read(one, "/code/seed.txt"), "planted");
    await write(one, "/code/more.txt", "grown");
    const two = await driver.create(spec({ mounts }));
    assert.equal(await read(two, "/code/more.txt"), "grown");
    for (const each of [one, two]) await driver.destroy(each.uid);
    await driver.destroyDrive(id);
  });

  test("an archive is unpacked into a folder and nowhere else", async (t) => {
    const { driver } = get();
    const dir = mkdtempSync(join(tmpdir(), "unpack-"));
    t.after(() => rmSync(dir, { recursive: true }));
    const [archive, folder] = [join(dir, "archive"), join(dir, "folder")];
    const limits = { entriesMax: 10, bytesMax: 10_000 };
    const send = (...entries: [path: string, type: string, body: string][]) => {
      rmSync(folder, { recursive: true, force: true });
      mkdirSync(folder);
      writeFileSync(archive, gzipSync(plainTar(entries)));
      return driver.unpack(archive, folder, limits);
    };
    assert.deepEqual(await send(["a/b.txt", "0", "hello"], ["a/", "5", ""], ["c", "0", "!"]), { sizeBytes: 6 });
    assert.deepEqual(readdirSync(folder, { recursive: true }).sort(), ["a", "a/b.txt", "c"]);
    assert.equal(readFileSync(join(folder, "a/b.txt"), "utf8"), "hello");
    assert.equal(statSync(join(folder, "a/b.txt")).uid, process.getuid?.());
    const refusals: [path: string, type: string, body: string][] = [
      ["../outside", "0", "x"],
      ["link", "2", ""],
      ["device", "4", ""],
      ["large", "0", "x".repeat(10_001)],
    ];
    for (const entry of refusals) await assert.rejects(send(entry), { code: "bad_request" }, entry[0]);
    await assert.rejects(driver.unpack(import.meta.filename, folder, limits), { code: "bad_request" });
    assert.deepEqual(readdirSync(dir).sort(), ["archive", "folder"]);
  });

  test("a snapshot starts new workloads with its files, and is not changed by them", async () => {
    const { driver, read, write } = get();
    const origin = await driver.create(spec());
    await write(origin, "/kept.txt", "before");
    const id = uid();
    assert.equal((await driver.snapshot(origin.uid, id)).id, id);
    await write(origin, "/kept.txt", "after");
    const copy = await driver.create(spec({ snapshot: id }));
    assert.equal(await read(copy, "/kept.txt"), "before");
    await write(copy, "/kept.txt", "changed");
    const again = await driver.create(spec({ snapshot: id }));
    assert.equal(await read(again, "/kept.txt"), "before");
    assert.equal(await read(origin, "/kept.txt"), "after");
    for (const each of [copy, again]) await driver.destroy(each.uid);
    await driver.removeSnapshot(id);
    assert.ok(!(await driver.listSnapshots()).some((each) => each.id === id));
    await assert.rejects(driver.create(spec({ snapshot: id })), { code: "bad_request" });
  });
}

function survival(get: Get, spec: Make): void {
  test("workloads survive their server and are known to the next one", async () => {
    const harness = get();
    const running = await harness.driver.create(spec());
    const frozen = await harness.driver.create(spec());
    await harness.write(running, "/kept.txt", "still here");
    await harness.driver.freeze(frozen.uid);
    const next = await harness.restart();
    const listed = new Map((await next.list()).map((each) => [each.uid, each]));
    assert.deepEqual(listed.get(running.uid), running);
    assert.equal(listed.get(frozen.uid)?.state, "frozen");
    assert.equal(await harness.read(running, "/kept.txt"), "still here");
    await next.thaw(frozen.uid);
    assert.equal((await call(frozen, "/health")).status, 200);
    for (const each of [running, frozen]) await next.destroy(each.uid);
    assert.equal(await next.observe(running.uid), null);
  });
}

/** One request to the workload's API socket. */
export async function call(
  workload: Pick<Observed, "endpoint">,
  path: string,
  options: { method?: string; body?: unknown; socket?: "api" | "control" } = {},
): Promise<{ status: number; text: string }> {
  const stream = await dial(workload.endpoint, options.socket ?? "api");
  return new Promise((resolve, reject) => {
    const outgoing = request({
      createConnection: () => stream,
      method: options.method ?? "GET",
      path,
      headers: { host: "sandbox", connection: "close", "content-type": "application/json" },
    });
    outgoing.once("error", reject);
    outgoing.once("response", (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        text += chunk;
      });
      response.once("error", reject);
      response.once("end", () => resolve({ status: response.statusCode ?? 0, text }));
    });
    outgoing.end(options.body === undefined ? undefined : JSON.stringify(options.body));
  });
}

/** The least that is a tar. */
function plainTar(entries: [path: string, type: string, body: string][]): Buffer {
  const blocks = entries.flatMap(([path, type, body]) => {
    const header = Buffer.alloc(512);
    header.write(path, 0);
    header.write("0000644", 100);
    header.write(body.length.toString(8).padStart(11, "0"), 124);
    header.write(`        ${type}/etc/passwd`, 148);
    header.write(
      header
        .reduce((sum, byte) => sum + byte, 0)
        .toString(8)
        .padStart(7, "0"),
      148,
    );
    header[155] = 0x20;
    return [header, Buffer.from(body), Buffer.alloc((512 - (body.length % 512)) % 512)];
  });
  return Buffer.concat([...blocks, Buffer.alloc(1024)]);
}
