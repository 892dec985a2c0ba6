import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { Program } from "./program.ts";
import { Spawner } from "./spawner.ts";
import { type Arch, stepperExecutable } from "./stepper.ts";
import { AT_FDCWD, SIGCHLD } from "./syscalls.ts";

const arch = process.arch as Arch;
const skip =
  process.platform === "linux" && (arch === "x64" || arch === "arm64") ? false : "needs Linux on x64 or arm64";

async function place(t: TestContext): Promise<{ spawner: Spawner; dir: string }> {
  const dir = mkdtempSync(join(tmpdir(), "stepper-"));
  const spawner = new Spawner(dir, arch);
  await spawner.open();
  t.after(async () => {
    await spawner.stop();
    rmSync(dir, { recursive: true });
  });
  return { spawner, dir };
}

const CREATE = 0o1101; // O_WRONLY | O_CREAT | O_TRUNC

test("steps run in order and know their descriptors beforehand", { skip }, async (t) => {
  const { spawner, dir } = await place(t);
  const names = ["one", "two"].map((name) => join(dir, name));
  await spawner.run("it", (program) => {
    const fds = names.map((name) => program.open("openat", [AT_FDCWD, name, CREATE, 0o600], `create ${name}`));
    fds.forEach((fd, index) => {
      program.step("write", [fd, `content ${index}`, 9], "write");
    });
  });
  assert.deepEqual(
    names.map((name) => readFileSync(name, "utf8")),
    ["content 0", "content 1"],
  );
});

test("a failing step ends the program and says which and why", { skip }, async (t) => {
  const { spawner } = await place(t);
  const failing = spawner.run("it", (program) => {
    program.step("mkdirat", [AT_FDCWD, "/", 0o700], "make what is there", { onError: "ignore" });
    program.step("chdir", ["/nowhere/at/all"], "go nowhere");
  });
  await assert.rejects(failing, { message: "it failed (go nowhere: ENOENT)." });
});

test("the parent and the child of a fork go their own ways", { skip }, async (t) => {
  const { spawner, dir } = await place(t);
  await spawner.run("it", (program) => {
    const [parent, child] = [program.label(), program.label()];
    const pid = program.words([0]);
    const status = program.words([0]);
    program.step("clone", [SIGCHLD], "fork", { onValue: parent, onZero: child, store: pid });
    program.place(child);
    program.step("exit_group", [7], "end the child");
    program.place(parent);
    program.step("wait4", [-1, status, 0, 0], "wait");
    const file = program.open("openat", [AT_FDCWD, join(dir, "out"), CREATE, 0o600], "create");
    program.step("write", [file, pid, 8], "write the pid");
    program.step("write", [file, status, 8], "write the status");
  });
  const out = readFileSync(join(dir, "out"));
  assert.ok(out.readBigInt64LE(0) > 1n);
  assert.equal(out.readBigInt64LE(8), 7n << 8n);
});

test("many programs at once do not mix, and a dead spawner is replaced", { skip }, async (t) => {
  const { spawner, dir } = await place(t);
  const write = (name: string): Promise<void> =>
    spawner.run(name, (program) => {
      const file = program.open("openat", [AT_FDCWD, join(dir, name), CREATE, 0o600], "create");
      program.step("write", [file, name, name.length], "write");
    });
  const names = Array.from({ length: 50 }, (_, index) => `file-${index}`);
  await Promise.all(names.map(write));
  for (const name of names) assert.equal(readFileSync(join(dir, name), "utf8"), name);
  await spawner.run("end", (program) => program.step("kill", [spawner.pid, 9], "end the spawner"));
  await spawner.ended();
  await write("after");
  assert.equal(readFileSync(join(dir, "after"), "utf8"), "after");
});

test("an aborted wait leaves nothing that keeps the process", { skip }, async (t) => {
  const { spawner } = await place(t);
  const waiting = spawner.start(
    (program) => {
      program.step("ppoll", [0, 0, program.words([1, 0]), 0, 0], "wait a second");
      program.step("exit_group", [0], "end");
    },
    () => false,
    AbortSignal.timeout(20),
  );
  await assert.rejects(waiting, { name: "TimeoutError" });
});

test("a label that was never placed is a bug found when encoding", () => {
  const program = new Program("x64");
  program.step("clone", [SIGCHLD], "fork", { onValue: program.label() });
  assert.throws(() => program.encode(), /never placed/);
});

test("the executables are what they were when last tried on real machines", () => {
  // Tried: arm64 by every test run there; x64 under an emulator. A change here needs both again.
  assert.equal(stepperExecutable("arm64").length, 120 + 24 * 4);
  assert.equal(stepperExecutable("x64").length, 120 + 0x6d);
});
