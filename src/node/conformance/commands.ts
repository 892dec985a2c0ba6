import assert from "node:assert/strict";
import { test } from "node:test";
import type { Observed } from "../workload.ts";
import type { Part } from "./harness.ts";

export const commands: Part = (get, spec) => {
  test("a command's exit code is observed", async () => {
    const { driver } = get();
    const wanted = spec({ exec: { argv: ["sh", "-c", 'exit "$CODE"'] }, env: { CODE: "7" } });
    await driver.create(wanted);
    const ended = await driver.waitExit(wanted.uid);
    assert.equal(ended?.state, "exited");
    assert.equal(ended?.exitCode, 7);
    assert.equal((await driver.observe(wanted.uid))?.exitCode, 7);
    assert.equal((await driver.create(wanted)).state, "exited", "an ended workload is not started again");
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
};

/** What holds for a command without a daemon beside it; `spec` makes only those. */
export const aloneOnly: Part = (get, spec) => {
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
};
