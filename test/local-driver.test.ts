import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { globSync, readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { driverConformance, type Harness } from "../src/runtime/conformance.ts";
import { type Observed, PLATFORM_DOOR_PORT, type WorkloadSpec } from "../src/runtime/driver.ts";
import { LocalMachine, localDriverMissing, run } from "./local-machine.ts";

if (localDriverMissing) test("local driver", { skip: localDriverMissing }, () => {});
else {
  driverConformance("local", () => harness({}));
  driverConformance("local (contained)", () => harness({ grade: "contained" }));
  ownTests();
}

async function harness(options: Parameters<LocalMachine["open"]>[0]): Promise<Harness> {
  const machine = new LocalMachine();
  const made: Harness = {
    driver: await machine.open({ poolSize: 1, ...options }),
    image: "berth/base-image:latest",
    read: async (workload, path) => {
      const { exitCode, output } = await run(workload, `cat ${path}`);
      if (exitCode !== 0) throw new Error(output);
      return output;
    },
    write: async (workload, path, text) => {
      const { exitCode, output } = await run(workload, `printf %s '${text}' > ${path}`);
      if (exitCode !== 0) throw new Error(output);
    },
    restart: async () => {
      await made.driver.stop("keep");
      made.driver = await machine.open({ poolSize: 1, ...options });
      return made.driver;
    },
    dispose: async () => {
      await made.driver.stop("kill");
      assert.deepEqual(tracesOf(machine.dataDir), []);
      assert.deepEqual(machine.warnings, []);
      machine.dispose();
    },
  };
  return made;
}

/** Whatever a driver may leave behind on the machine: processes, mounts, control groups, folders. */
function tracesOf(dataDir: string): string[] {
  const processes = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => ["mountinfo", "cmdline"].some((file) => readOrEmpty(`/proc/${pid}/${file}`).includes(dataDir)))
    .map((pid) => `process ${pid} ${readOrEmpty(`/proc/${pid}/cmdline`)}`);
  const mounts = readOrEmpty("/proc/self/mountinfo")
    .split("\n")
    .filter((line) => line.includes(dataDir));
  const folders = readdirSync(join(dataDir, "workloads"));
  const group = `berth-${createHash("sha256").update(dataDir).digest("hex").slice(0, 8)}`;
  const groups = globSync(`/sys/fs/cgroup/**/${group}`);
  return [...processes, ...mounts, ...folders, ...groups];
}

function readOrEmpty(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

const spec = (uid: string, more: Partial<WorkloadSpec> = {}): WorkloadSpec => ({
  uid,
  name: "box",
  image: "berth/base-image:latest",
  env: {},
  limits: { memoryMb: 256, cpus: 1 },
  network: "outbound",
  ...more,
});

function ownTests(): void {
  test("a pooled workload is like a cold one", async () => {
    const machine = new LocalMachine();
    const driver = await machine.open({ poolSize: 1 });
    await driver.stocked();
    assert.deepEqual(await driver.list(), [], "prepared workloads are nobody's");
    await driver.createDrive("shared");
    const more = {
      name: "named",
      env: { GREETING: "a 'quoted'\n$line" },
      mounts: [{ source: { drive: "shared", path: "/sub" }, path: "/mnt/d", readOnly: true }],
    };
    const look = `hostname; printf %s "$GREETING" | od -c; pwd; id; env | grep -vi -e '^_=' -e pid | sort; touch /mnt/d/x; df /mnt/d | wc -l`;
    const pooled = await driver.create(spec("a", more));
    const cold = await driver.create(spec("b", { ...more, image: "berth/node" }));
    assert.deepEqual([pooled.pooled, cold.pooled], [true, false]);
    const [one, two] = [await run(pooled, look), await run(cold, look)];
    assert.match(one.output, /^named\n/);
    assert.match(one.output, /Read-only file system/);
    assert.deepEqual(one, two);
    await driver.stop("kill");
    assert.deepEqual(tracesOf(machine.dataDir), []);
    machine.dispose();
  });

  test("doors lead to the platform, with the caller's name, and out, but not to private addresses", async () => {
    const machine = new LocalMachine();
    const inside: string[] = [];
    const server = createServer((incoming, response) => response.end(`from outside to ${incoming.headers.host}`));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const counted: number[] = [];
    const driver = await machine.open({
      onPlatform: (uid, socket) => {
        inside.push(uid);
        socket.end("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\nhi\n");
      },
      egress: {
        allowed: (host) => host === "allowed.test",
        resolve: async () => ["127.0.0.1"],
        onBytes: (_, sent, received) => counted.push(sent, received),
      },
    });
    const made = await driver.create(spec("caller"));
    const get = (url: string): string => `node -e 'require("http").get("${url}", r => r.pipe(process.stdout))'`;
    assert.equal((await run(made, get(`http://127.0.0.1:${PLATFORM_DOOR_PORT}/`))).output, "hi\n");
    assert.deepEqual(inside, ["caller"]);
    const through = (host: string): string =>
      `node -e 'const u = new URL(process.env.HTTP_PROXY); require("http").get({ host: u.hostname, port: u.port, path: "http://${host}:${port}/" }, r => r.pipe(process.stdout))'`;
    assert.equal((await run(made, through("allowed.test"))).output, `from outside to allowed.test:${port}`);
    assert.match((await run(made, through("127.0.0.1"))).output, /not a public address/);
    assert.match((await run(made, through("private.test"))).output, /not a public address/);
    const closed = await driver.create(spec("closed", { network: "closed" }));
    assert.equal((await run(closed, "env | grep -ci proxy")).output, "0\n");
    await driver.stop("kill");
    server.close();
    assert.ok(counted.length > 0 && counted.every((bytes) => bytes > 0));
    machine.dispose();
  });

  test("a server killed in the middle leaves nothing half-made", async () => {
    const machine = new LocalMachine();
    const child = spawn(process.execPath, ["test/local-driver-child.ts", machine.dataDir], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const made = JSON.parse((await lines.next()).value as string) as Observed;
    // The child goes on creating; it dies at some point of that.
    await lines.next();
    child.kill("SIGKILL");
    await once(child, "exit");
    const driver = await machine.open();
    const adopted = await driver.list();
    assert.deepEqual(
      adopted.find(({ uid }) => uid === made.uid),
      made,
    );
    assert.equal((await run(made, "cat /kept")).output, "still here\n");
    for (const workload of adopted) assert.equal((await run(workload, "true")).exitCode, 0);
    assert.equal(globSync(join(machine.dataDir, "workloads/*")).length, adopted.length, "debris is gone");
    await driver.stop("kill");
    assert.deepEqual(tracesOf(machine.dataDir), []);
    machine.dispose();
  });

  test("stop leaves workloads running, frozen or ended as told", async () => {
    const machine = new LocalMachine();
    const first = await machine.open();
    const made = await first.create(spec("a"));
    await first.stop("keep");
    assert.equal((await run(made, "echo on")).output, "on\n");
    const second = await machine.open();
    await second.stop("freeze");
    const third = await machine.open();
    assert.equal((await third.observe("a"))?.state, "frozen");
    await third.stop("kill");
    assert.deepEqual(tracesOf(machine.dataDir), []);
    machine.dispose();
  });
}
