/** Commands that this machine's driver runs without a daemon: what only they have. The rest is in its conformance. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { globSync, readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import type { LocalDriver } from "../../src/node/drivers/local/local-driver.ts";
import { type Observed, PLATFORM_DOOR_PORT, type WorkloadSpec } from "../../src/node/workload.ts";
import { LocalMachine, localDriverMissing, localGrades, memoryMissing, sizesMissing, tracesOf } from "./machine.ts";

const spec = (uid: string, argv: string[], more: Partial<WorkloadSpec> = {}): WorkloadSpec => ({
  uid,
  name: "box",
  image: "berth/base-image:latest",
  env: {},
  limits: { memoryMb: 256, cpus: 1 },
  network: "outbound",
  exec: { argv, alone: true },
  ...more,
});

interface Ended {
  observed: Observed | null;
  stdout: string;
  stderr: string;
}

async function run(driver: LocalDriver, wanted: WorkloadSpec): Promise<Ended> {
  await driver.create(wanted);
  const observed = await driver.waitExit(wanted.uid);
  const read = async (stream: "stdout" | "stderr"): Promise<string> =>
    (await driver.readOutput(wanted.uid, stream, 0, 100_000)).bytes.toString();
  const [stdout, stderr] = [await read("stdout"), await read("stderr")];
  await driver.destroy(wanted.uid);
  return { observed, stdout, stderr };
}

describe("commands without a daemon", { skip: localDriverMissing ?? false }, () => {
  test("their doors lead to the platform, with the caller's name, and out, but not to private addresses", async (t) => {
    const machine = new LocalMachine();
    const inside: string[] = [];
    const server = createServer((incoming, response) => response.end(`outside, ${incoming.headers.host}`));
    server.listen(0, "127.0.0.1");
    t.after(() => server.close());
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const driver = await machine.open({
      outbound: "proxy",
      onPlatform: (uid, socket) => {
        inside.push(uid);
        socket.end(`HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 200000\r\n\r\n${"x".repeat(200_000)}`);
      },
      egress: { allowed: (host) => host === "allowed.test", resolve: async () => ["127.0.0.1"], onBytes: () => {} },
    });
    const get = `const show = (r) => { let n = ""; r.on("data", (d) => (n += d)).on("end", () => console.log(n.length > 99 ? n.length : n)); };
      const { hostname, port } = new URL(process.env.HTTP_PROXY);
      require("http").get("http://127.0.0.1:${PLATFORM_DOOR_PORT}/", show);
      require("http").get({ host: hostname, port, path: "http://allowed.test:${port}/" }, show);
      require("http").get({ host: hostname, port, path: "http://127.0.0.1:${port}/" }, show);`;
    const { stdout, stderr } = await run(driver, spec("caller", ["node", "-e", get]));
    const lines = stdout.trim().split("\n");
    for (const line of ["200000", `outside, allowed.test:${port}`]) assert.ok(lines.includes(line), stdout + stderr);
    assert.match(stdout, /not a public address/);
    assert.deepEqual(inside, ["caller"]);
    await driver.stop("kill");
    assert.deepEqual(tracesOf(machine.dataDir), []);
    machine.dispose();
  });

  test("whoever needs too much memory is told apart from whoever comes after it", async (t) => {
    const machine = new LocalMachine();
    const driver = await machine.open();
    t.after(async () => {
      await driver.stop("kill");
      machine.dispose();
    });
    const missing = memoryMissing((await driver.probe()).limits);
    if (missing) return t.skip(missing);
    const hungry = spec("hungry", ["node", "-e", "const all = []; for (;;) all.push(Buffer.alloc(1e6, 1))"]);
    const limits = { memoryMb: 64, cpus: 1 };
    assert.equal((await run(driver, { ...hungry, limits })).observed?.oom, true);
    const next = await run(driver, { ...spec("next", ["sh", "-c", "exit 3"]), limits });
    assert.deepEqual([next.observed?.oom, next.observed?.exitCode], [false, 3]);
  });

  test("a flood of output does not fill the disk", async () => {
    const machine = new LocalMachine();
    const driver = await machine.open();
    await driver.create(spec("flood", ["sh", "-c", "yes 0123456789abcdef | head -c 80000000; exec sleep 600"]));
    const [file = ""] = globSync(join(machine.dataDir, "tasks/*/*/out"));
    for (;;) {
      const { size, blocks } = statSync(file);
      if (size === 80_000_000 && blocks * 512 <= 33 * 1024 * 1024) break;
      await delay(20);
    }
    await driver.stop("kill");
    assert.deepEqual(tracesOf(machine.dataDir), []);
    machine.dispose();
  });

  test("a volume has its size, and a drive its files", { skip: sizesMissing }, async () => {
    const machine = new LocalMachine();
    const driver = await machine.open();
    await driver.capabilities.volumes.create({ id: "scratch", sizeMb: 16 });
    await driver.capabilities.drives.create("code");
    const mounts = [
      { source: { volume: "scratch" }, path: "/scratch" },
      { source: { drive: "code" }, path: "/code/deep", readOnly: true },
    ];
    const script =
      "dd if=/dev/zero of=/scratch/big bs=1M count=64 2>/dev/null && exit 9; touch /code/deep/x && exit 8; ls /scratch";
    const { observed, stdout } = await run(driver, spec("mounted", ["sh", "-c", script], { mounts }));
    assert.equal(observed?.exitCode, 0, stdout);
    assert.match(stdout, /big/);
    await driver.capabilities.volumes.destroy("scratch");
    await driver.stop("kill");
    assert.deepEqual(tracesOf(machine.dataDir), []);
    machine.dispose();
  });

  for (const grade of localGrades)
    test(`the processes beside it show nothing to a command of grade ${grade}, and cannot be ended by it`, async () => {
      const machine = new LocalMachine();
      const held: Socket[] = [];
      const driver = await machine.open({ grade, onPlatform: (_, socket) => void held.push(socket) });
      // With a connection at a door there are those who carry it, too.
      const script = `
        const fs = require("node:fs");
        const beside = () => fs.readdirSync("/proc").filter((pid) => /^\\d+$/.test(pid) && Number(pid) !== process.pid);
        const look = () => {
          const others = beside();
          const shown = others.flatMap((pid) => ["root", "cwd", "environ", "fd/0", "mem", "map_files"].flatMap((name) => {
            const at = "/proc/" + pid + "/" + name;
            const look = { environ: fs.readFileSync, mem: fs.readFileSync, "fd/0": fs.readlinkSync }[name] ?? fs.readdirSync;
            try { look(at); return [at]; } catch { return []; }
          }));
          try { process.kill(1, "SIGKILL"); } catch {}
          console.log(JSON.stringify({ others: others.length, shown }));
          process.exit(0);
        };
        const wait = () => setTimeout(...(beside().length < 3 ? [wait, 20] : [look, 200]));
        require("node:net").connect(${PLATFORM_DOOR_PORT}, "127.0.0.1", wait);`;
      const { stdout, stderr, observed } = await run(driver, spec("nosy", ["node", "-e", script]));
      assert.equal(observed?.exitCode, 0, stderr);
      const { others, shown } = JSON.parse(stdout) as { others: number; shown: string[] };
      assert.ok(others >= 3, "init and the two who carry bytes are there");
      assert.deepEqual(shown, []);
      for (const socket of held) socket.destroy();
      await driver.stop("kill");
      assert.deepEqual(tracesOf(machine.dataDir), []);
      machine.dispose();
    });

  test("a command whose watcher is killed ends with it, and that is known", async () => {
    const machine = new LocalMachine();
    const driver = await machine.open();
    const { pid = 0 } = await driver.create(spec("watched", ["sleep", "600"]));
    process.kill(Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]), "SIGKILL");
    assert.equal((await driver.waitExit("watched"))?.exitSignal, "SIGKILL");
    assert.deepEqual(globSync(`/proc/${pid}/cmdline`), []);
    await driver.destroy("watched");
    await driver.stop("kill");
    assert.deepEqual(tracesOf(machine.dataDir), []);
    machine.dispose();
  });

  test("the next life of a killed server ends what ran, and can read what it wrote", async (t) => {
    const machine = new LocalMachine();
    t.after(async () => {
      await (await machine.open()).stop("kill"); // whatever went wrong above
      machine.dispose();
    });
    const child = spawn(process.execPath, ["test/local/task-child.ts", machine.dataDir], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    // The child goes on starting more; it dies at some point of that.
    for (let n = 0; n < 5; n += 1) await lines.next();
    child.kill("SIGKILL");
    await once(child, "exit");
    assert.ok(tracesOf(machine.dataDir).length > 0, "they outlive their server");
    const driver = await machine.open();
    const left = await driver.list();
    assert.ok(left.length >= 5);
    for (const { uid, state, log } of left) {
      assert.deepEqual([state, log?.name], ["exited", "box"]);
      assert.match((await driver.readOutput(uid, "stdout", 0, 100)).bytes.toString(), /^(begun\n)?$/);
      await driver.destroy(uid);
      assert.equal(await driver.observe(uid), null);
    }
    assert.equal((await run(driver, spec("after", ["sh", "-c", "exit 4"]))).observed?.exitCode, 4);
    await driver.stop("kill");
    assert.deepEqual(tracesOf(machine.dataDir), []);
  });
});
