/** `berth sandbox …` in processes of its own, with sandboxes on this machine's own driver. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { type RunOptions, runBerth, spawnBerth } from "../../berth-process.ts";
import { machineSkip, sandboxSuite } from "../../sandbox-suite.ts";
import { eventually } from "../../sandboxd-harness.ts";

describe("the sandbox commands", { skip: machineSkip }, () => {
  const suite = sandboxSuite();
  const folder = mkdtempSync(join(tmpdir(), "berth-cli-"));
  before(() => suite.start({ standby_after: "60" }));
  after(async () => {
    await suite.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  const berth = (args: string[], options: RunOptions = {}) => {
    const { url, apiKey } = suite.platform();
    return runBerth(["sandbox", ...args], {
      ...options,
      env: { BERTH_URL: url, BERTH_API_KEY: apiKey, BERTH_DATA: folder },
    });
  };

  test("create, exec with its output and exit code, logs", async () => {
    const made = await berth(["create", "box", "--set", "spec.runtime.memory=512"]);
    assert.equal(made.code, 0, made.stderr);
    const ran = await berth(["exec", "box", "--", "sh", "-c", "echo 'out of it'; echo err >&2; exit 7"]);
    assert.deepEqual([ran.code, ran.stdout, ran.stderr], [7, "out of it\n", "err\n"]);
    assert.equal((await berth(["exec", "box", "echo $BL_NAME"])).stdout, "box\n");
    await suite.inside("box", "POST", "/process", { command: "echo logged", name: "job", waitForCompletion: true });
    assert.match((await berth(["logs", "box"])).stdout, /job/);
    assert.equal((await berth(["logs", "box", "job"])).stdout, "logged\n");
    assert.equal((await berth(["logs", "box", "job", "--follow"])).stdout, "logged\n");
    assert.equal((await berth(["exec", "nowhere", "true"])).code, 3);
    assert.equal((await berth(["logs", "box", "nothing"])).code, 3);
  });

  test("what is piped in reaches the command, and an interrupt ends it", async (t) => {
    const piped = await berth(["exec", "-i", "box", "--", "wc", "-c"], { input: "x".repeat(100_000) });
    assert.deepEqual([piped.code, piped.stdout.trim()], [0, "100000"], piped.stderr);
    const { url, apiKey } = suite.platform();
    const env = { BERTH_URL: url, BERTH_API_KEY: apiKey, BERTH_DATA: folder };
    const asked = spawnBerth(["sandbox", "exec", "-i", "box", "read a; echo got $a; read b; exit $b"], {
      env,
      keepInput: true,
    });
    asked.child.stdin?.write("one\n");
    await asked.printed(/got one/);
    // Its own input never ends; the command does.
    asked.child.stdin?.write("5\n");
    assert.equal((await asked.ended).code, 5);
    const unnamed = await berth(["exec", "-i", "box", "ls -A /tmp | grep cli-; cat"], { input: "seen" });
    assert.equal(unnamed.stdout, "seen", "a killed command line leaves nothing behind");
    assert.equal((await berth(["exec", "box", "cat; ls -A /tmp | grep cli-"], { input: "unseen" })).stdout, "");
    const waiting = spawnBerth(["sandbox", "exec", "box", "echo begun; sleep 600"], { env });
    await waiting.printed(/begun/);
    waiting.child.kill("SIGINT");
    assert.equal((await waiting.ended).code, 130);
    const isStopped = async () => /sleep 600\s+stopped/.test((await berth(["logs", "box"])).stdout);
    await eventually(isStopped, "the command's end");
    const stubborn = spawnBerth(["sandbox", "exec", "box", "trap '' TERM INT; echo deaf; while :; do sleep 1; done"], {
      env,
    });
    await stubborn.printed(/deaf/);
    const presses = setInterval(() => stubborn.child.kill("SIGINT"), 1000);
    t.after(() => clearInterval(presses));
    const left = await stubborn.ended;
    const [, name = "", stop = ""] = /goes on as (\S+); stop it with `berth (.+)`\.$/m.exec(left.stderr) ?? [];
    assert.deepEqual([left.code, /^cli-/.test(name)], [130, true], left.stderr);
    assert.equal((await runBerth(stop.split(" "), { env })).code, 0);
  });

  test("a file goes in and comes out as it was", async () => {
    const bytes = Buffer.from(Array.from({ length: 300_000 }, (_, n) => n % 251));
    writeFileSync(join(folder, "in.bin"), bytes);
    assert.equal((await berth(["cp", join(folder, "in.bin"), "box:/tmp/copy.bin"])).code, 0);
    const out = await berth(["cp", "box:/tmp/copy.bin", join(folder, "out.bin")]);
    assert.equal(out.code, 0, out.stderr);
    assert.ok(readFileSync(join(folder, "out.bin")).equals(bytes));
    assert.equal((await berth(["cp", "a", "b"])).code, 2);
    assert.equal((await berth(["cp", "box:/no/such", join(folder, "x")])).code, 3);
  });

  test("a folder goes in and comes out with all that is in it", async () => {
    const [here, back] = [join(folder, "tree"), join(folder, "back")];
    mkdirSync(join(here, "deep/er"), { recursive: true });
    mkdirSync(join(here, "empty"));
    writeFileSync(join(here, "run.sh"), "#!/bin/sh\necho ran\n", { mode: 0o755 });
    writeFileSync(join(here, "deep/er/näme with space"), "text");
    const sent = await berth(["cp", here, "box:/tmp/"]);
    assert.equal(sent.code, 0, sent.stderr);
    assert.match(sent.stderr, /copied 2 files, 23 bytes/);
    assert.equal(
      (await berth(["exec", "box", "/tmp/tree/run.sh && ls -d /tmp/tree/empty"])).stdout,
      "ran\n/tmp/tree/empty\n",
    );
    assert.equal((await berth(["cp", "box:/tmp/tree", back])).code, 0);
    assert.equal(readFileSync(join(back, "deep/er/näme with space"), "utf8"), "text");
    assert.equal(statSync(join(back, "run.sh")).mode & 0o777, 0o755);
    assert.ok(statSync(join(back, "empty")).isDirectory());
    assert.match((await berth(["cp", join(folder, "nothing"), "box:/tmp/"])).stderr, /neither a file nor a folder/);
  });

  test("links in circles and what is no file are left out, and the rest is copied", async () => {
    const here = join(folder, "odd");
    mkdirSync(join(here, "deep"), { recursive: true });
    writeFileSync(join(here, "deep/file"), "text");
    symlinkSync("..", join(here, "deep/loop"));
    symlinkSync("deep", join(here, "again"));
    const sent = await berth(["cp", here, "box:/tmp/odd"]);
    assert.equal(sent.code, 0, sent.stderr);
    assert.match(sent.stderr, /copied 2 files, 8 bytes in .* s\n.*left out .*deep\/loop/);
    await berth([
      "exec",
      "box",
      "ln -s /tmp/odd /tmp/odd/deep/loop; ln -s /nowhere /tmp/odd/lost; mkfifo /tmp/odd/pipe",
    ]);
    const back = await berth(["cp", "box:/tmp/odd", join(folder, "odd-back")]);
    assert.match(back.stderr, /copied 2 files, 8 bytes in .* s\n.*left out \/tmp\/odd\/deep\/loop/);
    assert.match(back.stderr, /not copied: .*\/tmp\/odd\/lost/);
    assert.match(back.stderr, /\/tmp\/odd\/pipe/);
    assert.equal(back.code, 1);
    assert.equal(readFileSync(join(folder, "odd-back/again/file"), "utf8"), "text");
  });

  test("a file goes into a folder that is there", async () => {
    writeFileSync(join(folder, "one.txt"), "one");
    assert.equal((await berth(["cp", join(folder, "one.txt"), "box:/tmp"])).code, 0);
    assert.equal((await berth(["exec", "box", "cat /tmp/one.txt"])).stdout, "one");
    assert.match((await berth(["cp", join(folder, "one.txt"), "box:/tmp/one.txt/below"])).stderr, /not a directory/);
  });

  test("a terminal takes what is typed and ends with its shell", async () => {
    const ended = await berth(["connect", "box"], { input: "echo sum=$((40+2))\nexit\n" });
    assert.equal(ended.code, 0, ended.stderr);
    assert.match(ended.stdout, /sum=42/);
  });

  test("previews, snapshots and forks", async () => {
    const open = await berth(["preview", "box", "4000", "--public"]);
    assert.match(open.stdout, /^http:\/\/\S+\n$/);
    const closed = await berth(["preview", "box", "4000", "--name", "mine"]);
    assert.match(closed.stdout, /\?bl_preview_token=\S+\n$/);
    const kept = await berth(["snapshot", "box", "--name", "now", "-o", "json"]);
    assert.equal(kept.code, 0, kept.stderr);
    const forked = await berth(["fork", "box", "copy", "--snapshot", JSON.parse(kept.stdout).id]);
    assert.equal(forked.code, 0, forked.stderr);
    assert.equal((await berth(["exec", "copy", "--", "wc", "-c", "/tmp/copy.bin"])).stdout, "300000 /tmp/copy.bin\n");
    assert.equal((await berth(["fork", "box", "copy"])).code, 5);
  });
});
