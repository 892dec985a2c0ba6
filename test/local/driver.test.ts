import assert from "node:assert/strict";
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, globSync, readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { before, test } from "node:test";
import { driverConformance } from "../../src/node/conformance/conformance.ts";
import type { WorkloadRecord } from "../../src/node/drivers/local/workload/record.ts";
import { type Observed, PLATFORM_DOOR_PORT, type WorkloadSpec } from "../../src/node/workload.ts";
import { LONG } from "../long.ts";
import { sandboxdBinary } from "../sandboxd-binary.ts";
import { LocalMachine, localCandidate, localDriverMissing, localGrades, tracesOf } from "./machine.ts";
import { run } from "./run.ts";

if (localDriverMissing) test("local driver", { skip: localDriverMissing }, () => {});
else {
  if (localGrades.includes("user")) await import("./driver-user.ts");
  else {
    driverConformance("local", localCandidate({}));
    driverConformance("local (contained)", { ...localCandidate({ grade: "contained" }), again: !LONG });
    fromRoot();
  }
  ownTests();
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

function fromRoot(): void {
  before(async () => {
    await sandboxdBinary(); // the user may not write beside the sources
  });
  const ending = async (child: ChildProcessWithoutNullStreams): Promise<{ code: number; output: string }> => {
    let output = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => (output += chunk));
    const [code] = await once(child, "close");
    return { code, output };
  };

  test("a server without root isolates too", async () => {
    const env = { ...process.env };
    const child = spawn(process.execPath, ["test/local/driver-user.ts"], { uid: 1000, gid: 1000, stdio: "pipe", env });
    const { code, output } = await ending(child);
    assert.equal(code, 0, output);
  });

  test("a server without root starts workloads where something is mounted below /usr, and leaves it out", async (t) => {
    const at = ["/usr/local/share", "/usr/share/doc"].find((path) => existsSync(path));
    if (at === undefined) return t.skip("needs /usr/local/share or /usr/share/doc: make one to include it");
    const mounted = 'mount -t tmpfs none "$0" && touch "$0/of-the-machine" && exec setpriv "$@"';
    const user = ["--reuid=1000", "--regid=1000", "--clear-groups"];
    const command = [mounted, at, ...user, process.execPath, "test/local/mounts-child.ts", at];
    const { code, output } = await ending(spawn("unshare", ["--mount", "sh", "-c", ...command], { stdio: "pipe" }));
    assert.deepEqual([code, output.trim()], [0, "/usr/local/bin/node\n/usr/bin/env\n0"]);
  });
}

function ownTests(): void {
  test("the base image is as large as the programs in it", async () => {
    const machine = new LocalMachine();
    const driver = await machine.open({ poolSize: 0 });
    const [base, node] = await Promise.all(
      ["berth/base-image", "berth/node:latest"].map((name) => driver.capabilities.images.bytes(name)),
    );
    assert.ok((base ?? 0) > statSync("/usr/bin/mount").size * 100, String(base));
    assert.equal(node, base);
    await driver.stop("kill");
    machine.dispose();
  });

  test("a pooled workload is like a cold one", async () => {
    const machine = new LocalMachine();
    const driver = await machine.open({ poolSize: 1 });
    await driver.stocked();
    assert.deepEqual(await driver.list(), [], "prepared workloads are nobody's");
    await driver.capabilities.drives.create("shared");
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

  test("a burst from the pool gives each its own name and variables, however many", async () => {
    const machine = new LocalMachine();
    const driver = await machine.open({ poolSize: 3 });
    await driver.stocked();
    const large = "x".repeat(20_000);
    const uids = ["a", "b", "c"];
    const made = await Promise.all(
      uids.map((uid) =>
        driver.create(spec(uid, { name: `box-${uid}`, env: { WHO: uid, LARGE: uid === "b" ? large : "" } })),
      ),
    );
    assert.deepEqual(
      made.map(({ pooled }) => pooled),
      [true, true, true],
    );
    const seen = await Promise.all(
      made.map((each) =>
        run(each, 'hostname; echo "$WHO $(printf %s "$LARGE" | wc -c)"; ls /var/log/sandbox-api | wc -l'),
      ),
    );
    assert.deepEqual(
      seen.map(({ output }) => output),
      ["box-a\na 0\n2\n", "box-b\nb 20000\n2\n", "box-c\nc 0\n2\n"],
    );
    await driver.stop("kill");
    assert.deepEqual(tracesOf(machine.dataDir), []);
    machine.dispose();
  });

  test("doors lead to the platform, with the caller's name, and out, but not to private addresses", async (t) => {
    const machine = new LocalMachine();
    const inside: string[] = [];
    const server = createServer((incoming, response) => response.end(`from outside to ${incoming.headers.host}`));
    server.listen(0, "127.0.0.1");
    t.after(() => server.close());
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const counted: number[] = [];
    const driver = await machine.open({
      outbound: "proxy", // address translation, where the machine has it, needs no variables (nat.test.ts)
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
    assert.ok(counted.length > 0 && counted.every((bytes) => bytes > 0));
    machine.dispose();
  });

  test("without isolation there is only what the operator has asked for", async () => {
    const machine = new LocalMachine();
    await assert.rejects(machine.open({ grade: "none" }), { code: "unavailable" });
    assert.deepEqual(tracesOf(machine.dataDir), [], "a driver that does not open leaves nothing");
    const driver = await machine.open({ grade: "none", allowUnisolated: true });
    assert.equal((await driver.probe()).grade, "none");
    const made = await driver.create(spec("plain", { env: { A: "b" } }));
    assert.deepEqual(await run(made, "echo $A; setsid sleep 500 & pwd; mkdir sub"), {
      exitCode: 0,
      output: `b\n${machine.dataDir}/workloads/${"dir" in made.endpoint ? made.endpoint.dir.split("/").at(-2) : ""}/home\n`,
    });
    assert.equal((await driver.capabilities.freezing.freeze("plain")).state, "frozen");
    assert.equal((await driver.capabilities.freezing.thaw("plain")).state, "running");
    assert.equal((await run(made, "echo on")).output, "on\n");
    const mounts = [{ source: { drive: "d" }, path: "/d" }];
    await assert.rejects(driver.create(spec("mounted", { mounts })), { code: "unprocessable" });
    const command = await driver.create(spec("command", { exec: { argv: ["sh", "-c", "exit 3"] } }));
    assert.equal((await driver.waitExit(command.uid))?.exitCode, 3);
    await driver.stop("kill");
    assert.deepEqual(tracesOf(machine.dataDir), []);
    machine.dispose();
  });

  test("a server killed in the middle leaves nothing half-made", async (t) => {
    const machine = new LocalMachine();
    t.after(async () => {
      await (await machine.open()).stop("kill"); // whatever went wrong above
      machine.dispose();
    });
    const child = spawn(process.execPath, ["test/local/driver-child.ts", machine.dataDir], {
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
  });

  test("stop leaves workloads running, frozen or ended as told", async () => {
    const machine = new LocalMachine();
    const first = await machine.open();
    const log = { workspace: "main", plural: "sandboxes", name: "a", uid: "a", source: "run" } as const;
    const made = await first.create(spec("a", { log }));
    await first.stop("keep");
    assert.equal((await run(made, "echo on")).output, "on\n");
    const second = await machine.open();
    assert.deepEqual((await second.observe("a"))?.log, log, "whose log it writes is known");
    await second.stop("freeze");
    const third = await machine.open();
    assert.equal((await third.observe("a"))?.state, "frozen");
    await third.stop("freeze");
    // A frozen process feels SIGKILL only when it goes on (control groups of version 1).
    const [record = ""] = globSync(join(machine.dataDir, "workloads/*/record.json"));
    const { pid, watcher } = JSON.parse(readFileSync(record, "utf8")) as WorkloadRecord;
    for (const each of [watcher.pid, pid]) process.kill(each, "SIGKILL");
    const fourth = await machine.open();
    assert.equal((await fourth.observe("a"))?.state, "exited", "a killed workload is not taken for a sleeping one");
    await fourth.stop("kill");
    assert.deepEqual(tracesOf(machine.dataDir), []);
    machine.dispose();
  });
}
