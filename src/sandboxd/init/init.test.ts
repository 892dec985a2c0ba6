import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { freePort } from "../../../test/free-port.ts";
import { sandboxdBinary } from "../../../test/sandboxd-binary.ts";
import {
  type Answer,
  askAt,
  childrenOf,
  daemonOf,
  eventually,
  killDaemon,
  skip,
  startSandboxd,
} from "../../../test/sandboxd-harness.ts";
import type { ExecConfig, ExecStatus, SandboxdConfig } from "../../contract/sandbox-wire.ts";

const statusIn = (file: string): ExecStatus => JSON.parse(readFileSync(file, "utf8"));

test("the daemon dies and nothing is lost", { skip }, async (t) => {
  await using d = await startSandboxd({
    mode: "init",
    config: (folder) => ({ claimFile: join(folder, "claim.json") }),
  });
  const fifo = join(d.workDir, "go");
  await d.exec(`mkfifo ${fifo}`);

  await t.test("processes go on, keep their names, and their ends are known", async () => {
    const started = await d.ask("POST", "/process", {
      body: {
        command: `echo before; read x < ${fifo}; echo after $x; exit 5`,
        name: "lasting",
        env: { A: "1" },
        keepAlive: true,
        timeout: 0,
      },
    });
    await d.exec("echo done; exit 3", { name: "ended" });
    writeFileSync(join(d.folder, "claim.json"), JSON.stringify({ env: { CLAIMED: "yes" } }));
    await killDaemon(d);
    const adopted = await d.ask("GET", "/process/lasting");
    assert.deepEqual(
      [adopted.json.status, adopted.json.pid, adopted.json.stdout],
      ["running", started.json.pid, "before\n"],
    );
    assert.equal((await d.ask("GET", "/activity", { socket: "control" })).json.keepAlive, 1);
    assert.deepEqual((await d.ask("GET", "/process/ended")).json.exitCode, 3);
    assert.equal((await d.exec("echo $CLAIMED")).json.stdout, "yes\n");
    writeFileSync(fifo, "it works\n");
    await eventually(async () => (await d.ask("GET", "/process/lasting")).json.status === "failed");
    const last = (await d.ask("GET", "/process/lasting")).json;
    assert.deepEqual([last.exitCode, last.stdout], [5, "before\nafter it works\n"]);
  });

  await t.test("an end while there is no daemon is known too", async () => {
    await d.ask("POST", "/process", { body: { command: `read x < ${fifo}; exit 9`, name: "orphan" } });
    const daemon = daemonOf(d);
    assert.ok(daemon);
    process.kill(daemon, "SIGSTOP");
    writeFileSync(fifo, "x\n");
    process.kill(daemon, "SIGKILL");
    await eventually(() => daemonOf(d) !== undefined && daemonOf(d) !== daemon);
    await d.ready();
    await eventually(async () => (await d.ask("GET", "/process/orphan")).json.status === "failed");
    assert.equal((await d.ask("GET", "/process/orphan")).json.exitCode, 9);
  });

  await t.test("stop, kill, log stream and restarts work on adopted processes", async () => {
    await d.ask("POST", "/process", { body: { command: "sleep 1000", name: "stop-me" } });
    await d.ask("POST", "/process", { body: { command: "trap '' TERM; sleep 1000", name: "kill-me" } });
    await d.ask("POST", "/process", {
      body: { command: `echo run; read x < ${fifo}; exit 1`, name: "restarts", restartOnFailure: true, maxRestarts: 1 },
    });
    await killDaemon(d);
    const stream = await d.open("GET", "/process/stop-me/logs/stream");
    assert.equal((await d.ask("DELETE", "/process/stop-me")).status, 200);
    assert.equal((await d.ask("DELETE", "/process/kill-me/kill")).status, 200);
    await eventually(async () => (await d.ask("GET", "/process/stop-me")).json.status === "stopped");
    await eventually(async () => (await d.ask("GET", "/process/kill-me")).json.status === "killed");
    stream.resume();
    await once(stream, "end");
    writeFileSync(fifo, "x\n");
    await eventually(async () =>
      (await d.ask("GET", "/process/restarts")).json.stdout.endsWith("restart 1 (of 1)]\nrun\n"),
    );
    writeFileSync(fifo, "x\n");
    await eventually(async () => (await d.ask("GET", "/process/restarts")).json.status === "failed");
  });

  await t.test("orphans are reaped", async () => {
    await d.exec("for i in 1 2 3 4 5 6 7 8; do (sh -c 'sleep 0.05' &) ; done");
    await eventually(() => {
      const left = childrenOf(d.process.pid).filter((pid) => pid !== daemonOf(d));
      return left.length === 0;
    }, "no child but the daemon");
  });
});

test("the ready descriptor is used once", { skip }, async () => {
  // In a later daemon the number of the ready descriptor belongs to some other file or connection.
  for (const readyFd of [4, 5, 6, 7, 8, 9, 10]) {
    await using d = await startSandboxd({ mode: "init", config: { readyFd } });
    const first = daemonOf(d);
    // The process ends between two daemons, so the second one opens its journal before it is ready.
    await d.exec("sleep 0.2; kill -9 $PPID; exit 3", { name: "last" }).catch(() => null);
    await eventually(() => daemonOf(d) !== undefined && daemonOf(d) !== first);
    await d.ready();
    await eventually(async () => (await d.ask("GET", "/process/last")).json.exitCode === 3);
    for (const word of ["two", "three"]) assert.equal((await d.exec(`echo ${word}`)).json.stdout, `${word}\n`);
    const journal = readFileSync(join(d.config.stateDir, "processes.ndjson"), "utf8").trim().split("\n");
    assert.equal(journal.length, 6, `two lines for each of three commands, with descriptor ${readyFd}`);
    for (const line of journal) assert.doesNotThrow(() => JSON.parse(line), line);
  }
});

test("upgrading", { skip }, async (t) => {
  await using d = await startSandboxd({
    mode: "init",
    config: (folder) => ({ upgradeFile: join(folder, "newer") }),
  });
  const file = d.config.upgradeFile ?? "";
  const upgrade = async (body: unknown, until: string) => {
    const { status, json } = await d.ask("POST", "/upgrade", { body });
    assert.deepEqual([status, typeof json.message], [200, "string"]);
    await eventually(async () => (await d.ask("GET", "/health")).json.lastUpgrade.status === until, until);
    return (await d.ask("GET", "/health")).json;
  };

  await t.test("restarts the daemon under running processes", async () => {
    await d.ask("POST", "/process", { body: { command: "sleep 1000", name: "through" } });
    const health = await upgrade({}, "completed");
    assert.equal(health.upgradeCount, 1);
    assert.equal((await d.ask("GET", "/process/through")).json.status, "running");
  });

  await t.test("takes the executable the platform has put there", async () => {
    copyFileSync(await sandboxdBinary(), file);
    const health = await upgrade({ version: "latest" }, "completed");
    assert.deepEqual([health.upgradeCount, health.lastUpgrade.binaryPath], [2, file]);
    assert.equal(readFileSync(`/proc/${daemonOf(d)}/cmdline`, "utf8").split("\0")[0], file);
  });

  await t.test("says why not, and goes on", async () => {
    assert.match((await upgrade({ version: "9.9.9" }, "failed")).lastUpgrade.error, /9\.9\.9 is not here/);
    assert.match(
      (await upgrade({ baseUrl: "http://elsewhere/" }, "failed")).lastUpgrade.error,
      /come from the platform/,
    );
    rmSync(file);
    writeFileSync(file, "#!/bin/sh\nexit 1\n", { mode: 0o755 });
    assert.equal((await upgrade({}, "failed")).upgradeCount, 2);
    assert.equal((await d.ask("GET", "/process/through")).json.status, "running");
  });
});

test("a daemon without init cannot be upgraded, and says so", { skip }, async () => {
  await using d = await startSandboxd();
  await d.ask("POST", "/upgrade", { body: {} });
  await eventually(async () => (await d.ask("GET", "/health")).json.lastUpgrade.status === "failed");
  assert.match((await d.ask("GET", "/health")).json.lastUpgrade.error, /no init/);
});

test("a foreground command", { skip }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "sandboxd-exec-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const statusFile = join(folder, "exit.json");
  const exec = (argv: string[], more: Partial<ExecConfig> = {}): ExecConfig => ({
    argv,
    statusFile,
    stdoutFile: join(folder, "out.log"),
    stderrFile: join(folder, "err.log"),
    ...more,
  });

  await t.test("runs beside the daemon; its end is init's, and lies in a file", async () => {
    rmSync(statusFile, { force: true });
    await using d = await startSandboxd({
      mode: "init",
      config: {
        env: { FROM: "config" },
        exec: exec(["sh", "-c", "echo $FROM $MINE; pwd; echo oops >&2; exit 7"], {
          env: { MINE: "exec" },
          cwd: "/tmp",
        }),
      },
    });
    const [code] = await once(d.process, "exit");
    assert.equal(code, 7);
    const { state, exitCode, restarts, finishedAt } = statusIn(statusFile);
    assert.deepEqual([state, exitCode, restarts, typeof finishedAt], ["exited", 7, 0, "string"]);
    assert.equal(readFileSync(join(folder, "out.log"), "utf8"), "config exec\n/tmp\n");
    assert.equal(readFileSync(join(folder, "err.log"), "utf8"), "oops\n");
  });

  await t.test("finds the platform's door open", async () => {
    const script =
      "require('node:net').connect(process.env.DOOR, '127.0.0.1').on('connect', () => process.exit(0)).on('error', () => process.exit(1))";
    const port = await freePort();
    await using d = await startSandboxd({
      mode: "init",
      config: {
        doors: [{ listen: `127.0.0.1:${port}`, socket: "/nowhere.sock" }],
        exec: exec([process.execPath, "-e", script], { env: { DOOR: String(port) } }),
      },
    });
    const [code] = await once(d.process, "exit");
    assert.equal(code, 0);
  });

  await t.test("may be given as arguments", async () => {
    const { executable, config } = await bare(folder);
    const child = spawn(executable, ["init", "--config", config, "--exec", "--", "sh", "-c", "kill -TERM $$"], {
      stdio: "ignore",
    });
    const [code] = await once(child, "exit");
    assert.equal(code, 128 + 15);
    assert.equal(statusIn(join(folder, "state", "exit.json")).signal, "SIGTERM");
  });

  await t.test("that cannot be started is 127 with the reason", async () => {
    await using d = await startSandboxd({ mode: "init", config: { exec: exec(["/nowhere/program"]) } });
    const [code] = await once(d.process, "exit");
    assert.equal(code, 127);
    const { exitCode, error } = statusIn(statusFile);
    assert.equal(exitCode, 127);
    assert.match(error ?? "", /ENOENT/);
  });

  await t.test("may end while the daemon stays", async () => {
    await using d = await startSandboxd({ mode: "init", config: { exec: exec(["true"], { onExit: "stay" }) } });
    await eventually(() => existsSync(statusFile) && statusIn(statusFile).state === "exited");
    assert.equal((await d.ask("GET", "/health")).status, 200);
  });

  await t.test("may be restarted", async () => {
    await using d = await startSandboxd({ mode: "init", config: { exec: exec(["false"], { onExit: "restart" }) } });
    await eventually(() => existsSync(statusFile) && statusIn(statusFile).restarts >= 2);
    assert.equal((await d.ask("GET", "/health")).status, 200);
  });

  await t.test("gets SIGTERM, time to finish, and then SIGKILL", async () => {
    const ready = join(folder, "ready");
    for (const [trap, graceMs, exitCode] of [
      ["echo bye; exit 0", 60_000, 0],
      ["", 300, undefined],
    ] as const) {
      const script = `trap '${trap}' TERM; : > ${ready}; while :; do sleep 0.02; done`;
      rmSync(ready, { force: true });
      rmSync(statusFile, { force: true });
      await using d = await startSandboxd({
        mode: "init",
        config: { graceMs, exec: exec(["sh", "-c", script]) },
      });
      await eventually(() => existsSync(ready) && statusIn(statusFile).state === "running");
      const { pid } = statusIn(statusFile);
      d.process.kill("SIGTERM");
      await once(d.process, "exit");
      await eventually(() => !existsSync(`/proc/${pid}`), "the command's end");
      if (exitCode !== undefined) assert.equal(statusIn(statusFile).exitCode, exitCode);
    }
  });

  await t.test("its output is capped as well", async () => {
    const script = "yes 0123456789abcdef | head -c 80000000; sleep 1000";
    const out = join(folder, "out.log");
    rmSync(out, { force: true });
    await using d = await startSandboxd({
      mode: "init",
      config: { graceMs: 100, exec: exec(["sh", "-c", script]) },
    });
    await eventually(async () => {
      const { stdout } = (await d.exec(`stat -c '%s %b' ${out}`)).json;
      const [size, blocks] = stdout.split(" ").map(Number);
      return size === 80_000_000 && blocks * 512 <= 32 * 1024 * 1024;
    }, "a file with its head given back");
  });
});

const noNamespaces =
  process.getuid?.() === 0 && existsSync("/usr/bin/unshare")
    ? false
    : "needs root and util-linux's unshare, to make a pid namespace";

test("as PID 1 of a namespace", { skip: skip || noNamespaces }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "sandboxd-pid1-"));
  const { executable, config } = await bare(folder, { graceMs: 3000 });
  const unshare = spawn(
    "/usr/bin/unshare",
    ["--pid", "--fork", "--mount-proc", executable, "init", "--config", config],
    {
      stdio: "ignore",
      cwd: folder,
    },
  );
  try {
    const exec = (command: string, more = {}): Promise<Answer> =>
      askAt(join(folder, "api.sock"), "POST", "/process", { command, waitForCompletion: true, ...more });
    await eventually(() => existsSync(join(folder, "api.sock")));
    await eventually(async () => (await exec("true")).status === 200);
    assert.match((await exec("cat /proc/1/cmdline | tr '\\0' ' '")).json.stdout, / init --config /);
    // Grandchildren whose parents are gone become children of PID 1, which must reap them.
    await exec("for i in 1 2 3 4 5; do (sh -c 'sleep 0.05' &) ; done");
    await eventually(async () => (await exec("ps -eo stat,ppid | grep -c '^Z' || true")).json.stdout === "0\n");
    const tidy = "trap 'sleep 0.2; echo done > tidied; exit 0' TERM; echo up > ready; while :; do sleep 0.02; done";
    await exec(tidy, { waitForCompletion: false });
    await exec("trap '' TERM; sleep 1000", { waitForCompletion: false });
    await eventually(() => existsSync(join(folder, "ready")));
    const [init] = childrenOf(unshare.pid);
    assert.ok(init);
    // A process that tidies up on SIGTERM gets time to do so; one that ignores SIGTERM ends with the grace period.
    process.kill(init, "SIGTERM");
    await once(unshare, "exit");
    assert.equal(readFileSync(join(folder, "tidied"), "utf8"), "done\n");
  } finally {
    for (const init of childrenOf(unshare.pid)) process.kill(init, "SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
});

test("a wrong configuration stops the start with its reason", { skip }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "sandboxd-config-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const { executable, config, settings } = await bare(folder);
  const run = async (args: string[]): Promise<[number | null, string]> => {
    const child = spawn(executable, args, { stdio: ["ignore", "ignore", "pipe"] });
    let text = "";
    child.stderr.on("data", (chunk) => {
      text += chunk;
    });
    const [code] = await once(child, "close");
    return [code, text];
  };
  const cases: [unknown, RegExp][] = [
    [{ ...settings, colour: "red" }, /unknown key "colour"/],
    [{ ...settings, apiSocket: undefined }, /"apiSocket" is missing or malformed/],
    [{ ...settings, apiSocket: "relative" }, /"apiSocket"/],
    [{ ...settings, env: { A: 1 } }, /"env"/],
    [{ ...settings, doors: [{ listen: "0.0.0.0:80", socket: "/x" }] }, /"doors"/],
    [{ ...settings, exec: { argv: [], statusFile: "/x" } }, /"exec"/],
    [[], /not a JSON object/],
  ];
  for (const [content, message] of cases) {
    writeFileSync(config, JSON.stringify(content));
    const [code, text] = await run(["serve", "--config", config]);
    assert.equal(code, 1);
    assert.match(text, message);
  }
  for (const args of [
    [],
    ["dance"],
    ["serve"],
    ["serve", "--config", "/nowhere"],
    ["serve", "--nope", "x", "--config", config],
  ]) {
    const [code, text] = await run(args);
    assert.equal(code, 1, args.join(" "));
    assert.match(text, /usage|ENOENT/);
  }
  const [code] = await run(["version"]);
  assert.equal(code, 0);
});

async function bare(folder: string, more: Partial<SandboxdConfig> = {}) {
  const settings: SandboxdConfig = {
    ...more,
    apiSocket: join(folder, "api.sock"),
    portSocket: join(folder, "ports.sock"),
    controlSocket: join(folder, "control.sock"),
    stateDir: join(folder, "state"),
    logDir: join(folder, "logs"),
  };
  const config = join(folder, "config.json");
  writeFileSync(config, JSON.stringify(settings));
  return { executable: await sandboxdBinary(), config, settings };
}
