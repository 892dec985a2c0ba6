import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { Program } from "./program.ts";
import { runProgram, type Stepper } from "./run-program.ts";
import { type Arch, stepperExecutable } from "./stepper.ts";
import { AT_FDCWD, SIGCHLD } from "./syscalls.ts";

const arch = process.arch as Arch;
const skip =
  process.platform === "linux" && (arch === "x64" || arch === "arm64") ? false : "needs Linux on x64 or arm64";

function place(t: TestContext): Stepper {
  const tempDir = mkdtempSync(join(tmpdir(), "stepper-"));
  t.after(() => rmSync(tempDir, { recursive: true }));
  const path = join(tempDir, "stepper");
  writeFileSync(path, stepperExecutable(arch), { mode: 0o755 });
  return { path, tempDir };
}

const CREATE = 0o1101; // O_WRONLY | O_CREAT | O_TRUNC

test("steps run in order and know their descriptors beforehand", { skip }, async (t) => {
  const stepper = place(t);
  const program = new Program(arch);
  const names = ["one", "two"].map((name) => join(stepper.tempDir, name));
  const fds = names.map((name) => program.open("openat", [AT_FDCWD, name, CREATE, 0o600], `create ${name}`));
  fds.forEach((fd, index) => {
    program.step("write", [fd, `content ${index}`, 9], "write");
  });
  program.step("exit_group", [0], "end");
  await runProgram(stepper, "it", program.encode());
  assert.deepEqual(
    names.map((name) => readFileSync(name, "utf8")),
    ["content 0", "content 1"],
  );
});

test("a failing step ends the program and says which and why", { skip }, async (t) => {
  const stepper = place(t);
  const program = new Program(arch);
  program.step("mkdirat", [AT_FDCWD, "/", 0o700], "make what is there", { onError: "ignore" });
  program.step("chdir", ["/nowhere/at/all"], "go nowhere");
  program.step("exit_group", [0], "end");
  await assert.rejects(runProgram(stepper, "it", program.encode()), { message: "it failed (go nowhere: ENOENT)." });
});

test("the parent and the child of a fork go their own ways", { skip }, async (t) => {
  const stepper = place(t);
  const program = new Program(arch);
  const [parent, child] = [program.label(), program.label()];
  const pid = program.words([0]);
  const status = program.words([0]);
  program.step("clone", [SIGCHLD], "fork", { ifValue: parent, otherwise: child, store: pid });
  program.place(child);
  program.step("exit_group", [7], "end the child");
  program.place(parent);
  program.step("wait4", [-1, status, 0, 0], "wait");
  const file = program.open("openat", [AT_FDCWD, join(stepper.tempDir, "out"), CREATE, 0o600], "create");
  program.step("write", [file, pid, 8], "write the pid");
  program.step("write", [file, status, 8], "write the status");
  program.step("exit_group", [0], "end");
  await runProgram(stepper, "it", program.encode());
  const out = readFileSync(join(stepper.tempDir, "out"));
  assert.ok(out.readBigInt64LE(0) > 1n);
  assert.equal(out.readBigInt64LE(8), 7n << 8n);
});

test("a label that was never placed is a bug found when encoding", () => {
  const program = new Program("x64");
  program.step("clone", [SIGCHLD], "fork", { ifValue: program.label() });
  assert.throws(() => program.encode(), /never placed/);
});

test("the executables are what they were when last tried on real machines", () => {
  // Tried: arm64 by every test run there; x64 under an emulator. A change here needs both again.
  assert.equal(stepperExecutable("arm64").length, 120 + 24 * 4);
  assert.equal(stepperExecutable("x64").length, 120 + 0x6d);
});
