/** Workloads of grade vm-like on the local driver. The whole conformance suite runs with `npm run test:long`. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { release } from "node:os";
import { after, before, suite, test } from "node:test";
import { CAPABILITY_NAMES } from "../../src/node/capabilities/capabilities.ts";
import { need } from "../../src/node/capabilities/need.ts";
import { driverConformance } from "../../src/node/conformance/conformance.ts";
import { dial } from "../../src/node/dial/dial.ts";
import type { LocalDriver } from "../../src/node/drivers/local/local-driver.ts";
import { PLATFORM_DOOR_PORT, type WorkloadSpec } from "../../src/node/workload.ts";
import { LocalMachine, localCandidate, localDriverMissing, tracesOf } from "../local/machine.ts";
import { run } from "../local/run.ts";
import { LONG } from "../long.ts";
import { RUNSC_MISSING, testRunsc } from "./binary.ts";

const runsc = localDriverMissing ? null : testRunsc();
const spec = (uid: string, more: Partial<WorkloadSpec> = {}): WorkloadSpec => ({
  ...{ uid, name: "box", image: "berth/base-image:latest", env: {}, limits: { memoryMb: 256, cpus: 1 } },
  ...{ network: "outbound", isolation: "vm-like" },
  ...more,
});

if (localDriverMissing) test("a machine without gVisor", { skip: localDriverMissing }, () => {});
else
  test("a machine without gVisor refuses grade vm-like, says why, and runs what asks for less", async () => {
    const machine = new LocalMachine();
    const absent = { runsc: "/nonexistent/runsc" };
    await assert.rejects(machine.open({ ...absent, isolation: "vm-like" }), { code: "unprocessable" });
    const driver = await machine.open(absent);
    const { grade, grades, missing } = await driver.probe();
    assert.deepEqual(grades, [grade]);
    assert.match(missing.join(" "), /vm-like does not work here: there is no program \/nonexistent\/runsc/);
    const refused = driver.create(spec("refused"));
    await assert.rejects(refused, { code: "unprocessable", message: /'vm-like' is asked for, .* needs .*gVisor/ });
    assert.equal(await driver.observe("refused"), null);
    assert.equal((await driver.create(spec("less", { isolation: "user" }))).grade, grade);
    await driver.stop("kill");
    machine.dispose();
  });

if (runsc === null) test("gVisor", { skip: RUNSC_MISSING }, () => {});
else {
  const gvisor = { isolation: "vm-like", runsc } as const;
  suite("a workload of grade vm-like", { timeout: 540_000 }, () => lives(runsc));
  if (LONG) {
    const capabilities = CAPABILITY_NAMES.filter((name) => name !== "hotMounts");
    driverConformance("local (vm-like)", { ...localCandidate(gvisor), capabilities });
  }
}

function lives(path: string): void {
  const machine = new LocalMachine();
  let driver: LocalDriver;
  const callers: string[] = [];
  before(async () => {
    driver = await machine.open({
      runsc: path,
      outbound: "proxy",
      onPlatform: (uid, socket) => {
        callers.push(uid);
        socket.end("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\nhi\n");
      },
      egress: { allowed: (host) => host === "allowed.test", resolve: async () => ["127.0.0.1"] },
    });
    await driver.capabilities.drives.create("shared");
    await driver.capabilities.volumes.create({ id: "disk", sizeMb: 64 });
    const mounts = [
      { source: { drive: "shared" }, path: "/mnt/drive", readOnly: true },
      { source: { volume: "disk" }, path: "/data" },
    ];
    await driver.create(spec("box", { mounts, env: { GREETING: "hello" } }));
  });
  after(async () => {
    await driver.stop("kill");
    assert.deepEqual(tracesOf(machine.dataDir), []);
    machine.dispose();
  });
  const box = async () => (await driver.observe("box")) ?? assert.fail("the workload is gone");

  test("its system calls meet a kernel of its own, as a user that is nobody outside", async () => {
    const made = await box();
    assert.deepEqual((await driver.probe()).grades, ["vm-like", "mapped"]);
    assert.deepEqual([made.grade, made.state], ["vm-like", "running"]);
    const { output } = await run(made, "uname -r; id -u; hostname; echo $GREETING; dmesg | grep -c gVisor");
    const [kernel, ...rest] = output.trim().split("\n");
    assert.notEqual(kernel, release());
    assert.deepEqual(rest, ["0", "box", "hello", "1"]);
    const stats = await driver.stats("box");
    assert.ok(stats.memoryBytes > 0 && stats.pids > 1);
  });

  test("it is resized while it runs, and refused while its memory lies on disk", async () => {
    const resizing = await driver.capability("resizing");
    if (!resizing) return;
    await run(await box(), "head -c 100M /dev/zero > /dev/shm/held");
    await assert.rejects(resizing.resize("box", { memoryMb: 96, cpus: 1 }), { code: "conflict", message: /in use/ });
    assert.equal((await resizing.resize("box", { memoryMb: 640, cpus: 0.5 })).limits.memoryMb, 640);
    assert.equal((await run(await box(), "rm /dev/shm/held && echo on")).output, "on\n");
    await (await need(driver, "hibernation")).hibernate("box");
    const asleep = resizing.resize("box", { memoryMb: 700, cpus: 1 });
    await assert.rejects(asleep, { code: "conflict", message: /lies on disk/ });
    await (await need(driver, "freezing")).thaw("box");
    assert.deepEqual((await box()).limits, { memoryMb: 640, cpus: 0.5 });
  });

  test("its files, volumes and drives are those of its record", async () => {
    const made = await box();
    await run(made, "echo kept > /kept; echo kept > /data/kept; echo kept > /tmp/kept");
    assert.match((await run(made, "touch /mnt/drive/x")).output, /Read-only file system/);
    const mount = { source: { drive: "shared" }, path: "/later" };
    const hot = await need(driver, "hotMounts");
    await assert.rejects(hot.mount("box", mount), { code: "unprocessable", message: /when it starts/ });
    await driver.destroy("box", { keepFiles: true });
    const mounts = [{ source: { volume: "disk" }, path: "/data" }];
    const again = await driver.create(spec("box", { mounts }));
    assert.equal((await run(again, "cat /kept /data/kept /tmp/kept")).output, "kept\nkept\nkept\n");
    const { uid } = await driver.create(spec("mapped", { isolation: "mapped", mounts: [] }));
    assert.equal((await driver.observe(uid))?.grade, "mapped");
    await driver.destroy(uid);
  });

  test("its ports are reached, its doors lead out, and it sleeps", async (t) => {
    const made = await box();
    const server = createServer((_, response) => response.end("outside")).listen(0, "127.0.0.1");
    t.after(() => server.close());
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const get = (url: string): string => `curl -s ${url}`;
    assert.equal((await run(made, get(`http://127.0.0.1:${PLATFORM_DOOR_PORT}/`))).output, "hi\n");
    assert.deepEqual(callers, ["box"]);
    assert.equal((await run(made, get(`http://allowed.test:${port}/`))).output, "outside");
    assert.match((await run(made, get(`http://private.test:${port}/`))).output, /not a public address/);
    const { freezing } = driver.capabilities;
    assert.equal((await freezing.freeze("box")).state, "frozen");
    assert.equal((await freezing.thaw("box")).state, "running");
    const listen = "node -e 'require(`net`).createServer(s => s.end(`served`)).listen(4000, () => console.log(1))'";
    await run(made, `${listen} > /up & until test -s /up; do sleep 0.02; done`);
    const socket = await dial(made.endpoint, 4000);
    socket.end();
    const chunks: Buffer[] = [];
    for await (const chunk of socket) chunks.push(chunk);
    assert.equal(Buffer.concat(chunks).toString(), "served");
  });
}
