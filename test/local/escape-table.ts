/**
 * Attempts to get out of a workload. Each must fail, on every grade of isolation that this machine gives. Whoever adds a
 * way in (a mount, a socket, a file shared with the workload) adds the attempt to abuse it here.
 */

import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { call } from "../../src/node/conformance/call.ts";
import { dial } from "../../src/node/dial/dial.ts";
import { Program } from "../../src/node/drivers/local/calls/program.ts";
import { ABSENT, REFUSED } from "../../src/node/drivers/local/calls/seccomp.ts";
import { parseReport } from "../../src/node/drivers/local/calls/spawner.ts";
import { type Arch, stepperExecutable } from "../../src/node/drivers/local/calls/stepper.ts";
import { CLONE, SIGCHLD } from "../../src/node/drivers/local/calls/syscalls.ts";
import type { LocalDriver } from "../../src/node/drivers/local/local-driver.ts";
import type { Grade, Observed, WorkloadSpec } from "../../src/node/workload.ts";
import { LocalMachine, memoryMissing } from "./machine.ts";
import { run } from "./run.ts";

const SECRET = "the-host-s-own-secret";
const arch = process.arch as Arch;
const column = arch === "x64" ? 0 : 1;
const [EPERM, ENOSYS] = [-1, -38];

interface Scene {
  driver: LocalDriver;
  machine: LocalMachine;
  box: Observed;
  other: Observed;
  /** A folder of the host that no workload was given. */
  hostDir: string;
}

const spec = (uid: string, more: Partial<WorkloadSpec> = {}): WorkloadSpec => ({
  uid,
  name: "box",
  image: "berth/base-image:latest",
  env: {},
  limits: { memoryMb: 256, cpus: 1, pids: 128 },
  network: "closed",
  ...more,
});

/** `runsc`: the path of gVisor, for grade vm-like. */
export function escapes(grade: Grade, runsc?: string): void {
  suite(`escape from a workload of grade ${grade}`, { timeout: 540_000 }, () => {
    const scene = {} as Scene;
    before(async () => {
      scene.machine = new LocalMachine();
      scene.driver = await scene.machine.open(runsc === undefined ? { grade } : { isolation: grade, runsc });
      await scene.driver.capabilities.drives.create("tools");
      const mounts = [{ source: { drive: "tools" }, path: "/tools" }];
      scene.box = await scene.driver.create(spec("box", { mounts }));
      scene.other = await scene.driver.create(spec("other"));
      scene.hostDir = mkdtempSync(join(tmpdir(), "host-"));
      writeFileSync(join(scene.hostDir, "secret"), SECRET, { mode: 0o666 });
      writeFileSync(join(toolsDir(scene), "stepper"), stepperExecutable(arch), { mode: 0o755 });
    });
    after(async () => {
      await scene.driver.stop("kill");
      rmSync(scene.hostDir, { recursive: true });
      scene.machine.dispose();
    });
    files(scene);
    settings(scene);
    neighbours(scene, grade);
    sharedGround(scene);
    if (grade === "vm-like") guestKernel(scene);
    else {
      kernel(scene, grade);
      runningMounts(scene);
      resources(scene);
    }
    stubborn(scene);
  });
}

const toolsDir = (scene: Scene): string => join(scene.machine.dataDir, "drives", "tools");

/** Makes one system call inside; answers with its result. */
async function attempt(scene: Scene, number: number, args: (number | string)[] = []): Promise<number> {
  const program = new Program(arch);
  program.step(number, args, "attempt");
  program.step("exit_group", [0], "end");
  writeFileSync(join(toolsDir(scene), "program"), program.encode());
  const command = "cd /tools && { ./stepper 3<program 4>report; echo $?; }";
  const { output } = await run(scene.box, command);
  const { failure } = parseReport(readFileSync(join(toolsDir(scene), "report")));
  return failure ? failure.errno : Number(output.trim());
}

/** Devices that gVisor itself makes up. */
const GUEST_DEVICES = ["fuse", "net"];

function files(scene: Scene): void {
  test("files of the host are not there, by any path", async () => {
    const secret = join(scene.hostDir, "secret");
    const paths = [
      secret,
      `/proc/1/root${secret}`,
      `/proc/self/root${secret}`,
      `/proc/1/cwd${secret}`,
      `/tools/../../../../../../..${secret}`,
      `/run/berth/../../../../../..${secret}`,
      "/run/berth/host/../../record.json",
    ];
    for (const path of paths) assert.notEqual((await run(scene.box, `cat ${path}`)).exitCode, 0, path);
    const { output } = await run(scene.box, `grep -rl ${SECRET} / --exclude-dir=proc --exclude-dir=usr 2>/dev/null`);
    assert.doesNotMatch(output, /host-/);
  });

  test("the machine's accounts, sockets and devices are not there", async () => {
    const { output } = await run(
      scene.box,
      "cat /etc/shadow; ls /var/run/docker.sock /run/docker.sock /run/systemd /run/dbus; ls /sys /sys/fs; ls /dev; true",
    );
    assert.doesNotMatch(output, /^root:/m);
    for (const gone of ["/var/run/docker.sock", "/run/docker.sock", "/run/systemd", "/run/dbus"]) {
      assert.match(output, new RegExp(`cannot access '${gone}'`));
    }
    const devices = (await run(scene.box, "ls /dev")).output.trim().split("\n");
    const allowed = "fd full null ptmx pts random shm stderr stdin stdout tty urandom zero".split(" ");
    assert.deepEqual(devices.filter((name) => !GUEST_DEVICES.includes(name)).sort(), allowed);
  });

  test("what the machine shares for reading cannot be written", async () => {
    for (const path of ["/run/berth/host/config.json", "/run/berth/bin/sandboxd"]) {
      assert.notEqual((await run(scene.box, `echo x >> ${path}`)).exitCode, 0, path);
      assert.notEqual((await run(scene.box, `rm ${path}`)).exitCode, 0, path);
    }
    const before = readFileSync("/usr/bin/env");
    await run(scene.box, "echo broken > /usr/bin/env");
    assert.deepEqual(readFileSync("/usr/bin/env"), before, "it wrote to its own copy");
  });
}

function kernel(scene: Scene, grade: Grade): void {
  test("dangerous system calls are refused or do not exist", async () => {
    for (const [table, verdict] of [[REFUSED, EPERM] as const, [ABSENT, ENOSYS] as const]) {
      for (const [name, numbers] of Object.entries(table)) {
        const number = numbers[column];
        if (number >= 0) assert.equal(await attempt(scene, number), verdict, name);
      }
    }
  });

  test("no new namespace by any flag of clone", async () => {
    for (const [name, flag] of Object.entries(CLONE)) {
      if (name === "NEWTIME") continue; // its bit belongs to the exit signal here
      assert.equal(await attempt(scene, column === 0 ? 56 : 220, [flag | SIGCHLD]), EPERM, name);
    }
  });

  test("no device file can be made or opened", async () => {
    const mknodat = column === 0 ? 259 : 33;
    const made = await attempt(scene, mknodat, [-100, "/tmp/disk", 0o060666, (254 << 8) | 0]);
    assert.equal(made, EPERM);
    assert.equal(await attempt(scene, mknodat, [-100, "/dev/mem2", 0o020666, (1 << 8) | 1]), EPERM);
  });

  privileges(scene, grade);
}

function settings(scene: Scene): void {
  test("settings of the machine cannot be written", async () => {
    const names = ["kernel/core_pattern", "kernel/hostname", "vm/overcommit_memory", "net/ipv4/ip_forward"];
    for (const name of names) {
      const before = readFileSync(`/proc/sys/${name}`, "utf8");
      assert.notEqual((await run(scene.box, `echo '|/tmp/x' > /proc/sys/${name}`)).exitCode, 0, name);
      assert.equal(readFileSync(`/proc/sys/${name}`, "utf8"), before);
    }
    for (const path of ["/proc/sysrq-trigger", "/proc/irq/default_smp_affinity"]) {
      assert.notEqual((await run(scene.box, `test -s ${path} && echo b > ${path}`)).exitCode, 0, path);
    }
    for (const name of ["kcore", "kmsg", "keys", "timer_list"]) {
      assert.equal((await run(scene.box, `head -c 10 /proc/${name} 2>/dev/null | wc -c`)).output.trim(), "0", name);
    }
  });
}

/** gVisor answers system calls itself: whatever they do happens to its own kernel. */
function guestKernel(scene: Scene): void {
  test("system calls that change a machine change nothing of this one", async () => {
    const machine = (): string =>
      ["hostname", "osrelease", "random/boot_id"]
        .map((name) => readFileSync(`/proc/sys/kernel/${name}`, "utf8"))
        .join();
    const before = machine();
    const attempts = [
      "unshare -Urm sh -c 'mount -t tmpfs x /mnt; mount --bind / /mnt'",
      "hostname broken; date -s 2001-01-01; swapoff -a; sync",
      "mount -t proc x /mnt; mount -t sysfs x /mnt; mount -t cgroup x /mnt; cat /mnt/*/release_agent",
      "mknod /tmp/disk b 254 0 && head -c 1 /tmp/disk; mknod /tmp/mem c 1 1 && head -c 1 /tmp/mem",
      "insmod /x.ko; chroot /proc/1/root true; echo c > /proc/sysrq-trigger",
    ];
    for (const attempt of attempts) {
      await run(scene.box, attempt);
      assert.equal(machine(), before, attempt);
    }
    assert.ok(Math.abs(Date.now() - Number((await run(scene.other, "date +%s")).output) * 1000) < 3_600_000);
    assert.equal((await run(scene.box, "head -c 1 /tmp/disk /tmp/mem")).output.includes("\0"), false);
  });

  test("the kernel inside is another one, and its process is nobody outside", async () => {
    const { output } = await run(scene.box, "cat /proc/sys/kernel/random/boot_id /proc/version");
    assert.doesNotMatch(output, new RegExp(readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()));
    const uids = new Set(processesOf(scene.box).map(uidOf));
    assert.ok(uids.size > 0 && [...uids].every((uid) => uid >= 0x6000_0000), [...uids].join());
  });
}

/** The processes on the machine in the pid namespace of the workload, without its first one. */
function processesOf({ pid }: Observed): string[] {
  const own = namespaceOf(String(pid));
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name) && name !== String(pid) && namespaceOf(name) === own);
}

function namespaceOf(pid: string): string {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`);
  } catch {
    return ""; // it has ended
  }
}

const uidOf = (pid: string): number => Number(/Uid:\t(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);

function privileges(scene: Scene, grade: Grade): void {
  test("privileges inside are void outside", async () => {
    const { output } = await run(scene.box, "cat /proc/self/status");
    assert.match(output, /NoNewPrivs:\t1/);
    assert.match(output, /Seccomp:\t2/);
    const capabilities = BigInt(`0x${/CapBnd:\t(\w+)/.exec(output)?.[1]}`);
    if (grade === "contained") assert.equal(capabilities, 0n);
    const systemWide = [12, 13, 16, 17, 19, 21, 22, 25, 27, 38, 39, 40]; // net admin, raw, modules, rawio, ptrace, sys admin ...
    for (const bit of systemWide) assert.equal((capabilities >> BigInt(bit)) & 1n, 0n, `capability ${bit}`);
    const outside = readFileSync(`/proc/${scene.box.pid}/status`, "utf8");
    const uid = Number(/Uid:\t(\d+)/.exec(outside)?.[1]);
    if (grade === "mapped") assert.ok(uid >= 0x6000_0000, "root inside is nobody outside");
  });
}

function neighbours(scene: Scene, grade: Grade): void {
  test("processes of the host and of others cannot be seen or signalled", async () => {
    const { output } = await run(scene.box, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '");
    assert.doesNotMatch(output, /local-driver|escape\.test|berth-spawner/);
    await run(scene.box, `kill -9 ${process.pid} ${scene.other.pid} ${scene.other.pid}; true`);
    assert.equal((await run(scene.other, "echo alive")).output, "alive\n");
    if (grade === "vm-like") return; // each guest kernel counts its namespaces from one
    const namespaces = ["mnt", "pid", "net", "ipc", "uts", "cgroup"];
    const mine = await run(scene.box, `cd /proc/self/ns && readlink ${namespaces.join(" ")}`);
    const theirs = await run(scene.other, `cd /proc/self/ns && readlink ${namespaces.join(" ")}`);
    mine.output.split("\n").forEach((each, index) => {
      if (each) assert.notEqual(each, theirs.output.split("\n")[index]);
    });
  });

  test("the network holds nothing but its own loopback", async () => {
    const server = createServer((socket) => socket.end("reached the host")).listen(0, "0.0.0.0");
    await once(server, "listening");
    const { port } = server.address() as { port: number };
    try {
      const interfaces = await run(scene.box, "cat /proc/net/dev | tail -n +3 | cut -d: -f1");
      assert.equal(interfaces.output.trim(), "lo");
      for (const host of ["127.0.0.1", "169.254.169.254", "10.0.0.1", "8.8.8.8"]) {
        const { output } = await run(scene.box, `timeout 2 bash -c 'cat < /dev/tcp/${host}/${port}' 2>&1`);
        assert.doesNotMatch(output, /reached/, host);
      }
    } finally {
      server.close();
    }
  });

  test("a port of a neighbour is not a port here", async () => {
    const listen = "node -e 'require(`net`).createServer(s => s.end(`hi`)).listen(4000, () => console.log(1))'";
    const serving = await scene.driver.create(spec("serving", { exec: { argv: ["bash", "-c", listen] } }));
    await listening(serving, 4000);
    assert.notEqual((await run(scene.box, "timeout 2 bash -c 'cat < /dev/tcp/127.0.0.1/4000'")).exitCode, 0);
    await scene.driver.destroy("serving");
  });
}

/** Resolves when something listens on that port inside. */
async function listening(workload: Observed, port: number): Promise<void> {
  for (;;) {
    const socket = await dial(workload.endpoint, port).catch(() => null);
    if (socket) return void socket.destroy();
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

function sharedGround(scene: Scene): void {
  test("a socket replaced by a link is not followed", async () => {
    const victim = await scene.driver.create(spec("links"));
    await run(victim, "rm /run/berth/ports.sock && ln -s /run/berth/control.sock /run/berth/ports.sock");
    await assert.rejects(dial(victim.endpoint, 80), { code: "bad_gateway" });
    await scene.driver.destroy("links");
  });

  test("a log replaced by a link or a pipe shows nothing", async () => {
    for (const [uid, trick] of Object.entries({ link: "ln -s /etc/passwd stdout.log", pipe: "mkfifo stdout.log" })) {
      const command = `cd /run/berth && rm -f stdout.log && ${trick}`;
      await scene.driver.create(spec(uid, { exec: { argv: ["sh", "-c", command] } }));
      assert.equal((await scene.driver.waitExit(uid))?.exitCode, 0);
      assert.equal((await scene.driver.readOutput(uid, "stdout", 0, 1000)).size, 0);
      await scene.driver.destroy(uid);
    }
  });
}

function runningMounts(scene: Scene): void {
  test("a link inside a drive does not lead a mount to the host", async () => {
    await run(scene.box, `ln -sfn ${scene.hostDir} /tools/evil; ln -sfn ../../../../../../etc /tools/up`);
    for (const path of ["/evil", "/up"]) {
      const mount = { source: { drive: "tools", path }, path: "/mnt/x" };
      await scene.driver.capabilities.hotMounts.mount("other", mount).catch(() => {}); // refusing is fine too
      const { output } = await run(scene.other, "ls -la /mnt/x; cat /mnt/x/secret /mnt/x/passwd");
      assert.doesNotMatch(output, new RegExp(`${SECRET}|root:x`));
      await scene.driver.capabilities.hotMounts.unmount("other", "/mnt/x");
    }
  });

  test("unmounting a drive cannot be turned against what protects /proc", async () => {
    await scene.driver.capabilities.drives.create("plain");
    await scene.driver.capabilities.hotMounts.mount("other", { source: { drive: "plain" }, path: "/trap/sys" });
    await run(scene.other, "mv /trap /moved && ln -s /proc /trap");
    assert.equal(await scene.driver.capabilities.hotMounts.unmount("other", "/trap/sys"), true);
    assert.match((await run(scene.other, "grep ' /proc/sys ' /proc/self/mountinfo")).output, / ro,/);
    assert.equal((await run(scene.other, "grep -c ' /moved' /proc/self/mountinfo")).output.trim(), "0");
  });
}

function resources(scene: Scene): void {
  test("a fork bomb stays inside its limit and the daemon still answers", async () => {
    const box = await scene.driver.create(spec("bomb"));
    const bomb = "for i in 1 2 3; do (while :; do sleep 600 & done) & done; wait";
    void run(box, bomb).catch(() => {}); // it ends with the workload
    await full(scene.driver, "bomb", 110);
    assert.ok((await scene.driver.stats("bomb")).pids <= 128);
    assert.equal((await call(box, "/health")).status, 200);
    assert.equal((await run(scene.other, "echo fine")).output, "fine\n");
    await scene.driver.destroy("bomb");
  });

  test("a memory hog is killed, the daemon and the others live", async (t) => {
    const missing = memoryMissing((await scene.driver.probe()).limits);
    if (missing) return t.skip(missing);
    const box = await scene.driver.create(spec("hog"));
    await run(box, "head -c 2G /dev/zero | tail -c 2G > /dev/null");
    const seen = await scene.driver.observe("hog");
    assert.deepEqual([seen?.state, seen?.oom], ["running", true]);
    assert.equal((await run(box, "echo alive")).output, "alive\n");
    assert.ok((await scene.driver.stats("hog")).memoryBytes < 300 * 1024 * 1024);
    await scene.driver.destroy("hog");
  });
}

function stubborn(scene: Scene): void {
  test("a process that ignores SIGTERM ends anyway", async () => {
    const argv = ["bash", "-c", "trap '' TERM INT HUP; while :; do sleep 1; done"];
    const made = await scene.driver.create(spec("stubborn", { exec: { argv } }));
    await scene.driver.destroy("stubborn", { graceMs: 100 });
    assert.equal(readdirSync("/proc").includes(String(made.pid)), false);
    assert.equal(await scene.driver.observe("stubborn"), null);
  });
}

/** Resolves when the workload has that many processes. */
async function full(driver: LocalDriver, uid: string, pids: number): Promise<void> {
  while ((await driver.stats(uid)).pids < pids) await new Promise((resolve) => setTimeout(resolve, 10));
}
