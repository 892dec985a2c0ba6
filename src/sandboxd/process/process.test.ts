import assert from "node:assert/strict";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { freePort } from "../../../test/free-port.ts";
import { eventually, linesOf, skip, startSandboxd } from "../../../test/sandboxd-harness.ts";

test("exec", { skip }, async (t) => {
  await using d = await startSandboxd({ env: { INHERITED: "yes", BUN_JSC_useJIT: "1" } });

  await t.test("waits, and tells output, exit code and dates", async () => {
    const { status, json } = await d.exec("echo out; echo err >&2; exit 3", { name: "first" });
    assert.equal(status, 200);
    assert.match(json.pid, /^\d+$/);
    assert.match(json.startedAt, /^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/);
    assert.match(json.completedAt, / GMT$/);
    const { pid, startedAt, completedAt, ...rest } = json;
    assert.deepEqual(rest, {
      name: "first",
      command: "echo out; echo err >&2; exit 3",
      status: "failed",
      exitCode: 3,
      workingDir: d.workDir,
      restartOnFailure: false,
      maxRestarts: 0,
      restartCount: 0,
      keepAlive: false,
      timeout: 0,
      stdout: "out\n",
      stderr: "err\n",
      logs: "out\nerr\n",
    });
  });

  await t.test("answers at once when not asked to wait", async () => {
    const { json } = await d.ask("POST", "/process", { body: { command: "sleep 100", name: "sleeper" } });
    assert.equal(json.status, "running");
    assert.equal(json.completedAt, "");
    assert.deepEqual([json.logs, json.stdout, json.stderr], [null, null, null]);
    assert.equal((await d.ask("DELETE", "/process/sleeper/kill")).status, 200);
    await eventually(async () => (await d.ask("GET", "/process/sleeper")).json.status === "killed");
  });

  await t.test("gives environment, working directory and a shell", async () => {
    const { json } = await d.exec('echo "$INHERITED $MINE $BUN_JSC_useJIT|$(pwd)" | cat', {
      env: { MINE: "a'b\n$c" },
      workingDir: "/tmp",
    });
    assert.equal(json.stdout, "yes a'b\n$c |/tmp\n");
    assert.equal((await d.exec("pwd", { workingDir: "~" })).json.stdout, `${d.folder}\n`);
  });

  await t.test("what it starts goes before the daemon when memory runs out", async () => {
    const score = (pid: string): string => readFileSync(`/proc/${pid}/oom_score_adj`, "utf8").trim();
    const { json } = await d.exec("echo $PPID; sh -c 'sh -c \"cat /proc/self/oom_score_adj; true\"; true'");
    const [daemon = "", child] = json.stdout.trim().split("\n");
    assert.equal(Number(child), Math.max(500, Number(score(daemon))));
    assert.equal(score(daemon), score("self"));
  });

  await t.test("and leaves it some processes", async () => {
    const limit = (text: string): number =>
      Number(/Max processes +(\d+|unlimited)/.exec(text)?.[1] ?? "0") || 1_000_000;
    const own = limit(readFileSync("/proc/self/limits", "utf8"));
    await using few = await startSandboxd({ config: { processesMax: own - 1 } });
    const { json } = await few.exec("sh -c 'cat /proc/self/limits; true'");
    assert.equal(limit(json.stdout), own - 1);
    // Checked only now: the child may run before the daemon has restored its own limit.
    assert.equal(limit(readFileSync(`/proc/${few.process.pid}/limits`, "utf8")), own);
  });

  await t.test("runs commands longer than one argument may be", async () => {
    const { json } = await d.exec(`: ${"x".repeat(300_000)}\necho done`);
    assert.equal(json.stdout, "done\n");
  });

  await t.test("refuses what cannot be started", async () => {
    const cases: [unknown, number, RegExp][] = [
      [{}, 400, /"command" is required/],
      [{ command: "" }, 400, /"command" is required/],
      [{ command: 5 }, 400, /must be a string/],
      ["{", 400, /not JSON/],
      ["[]", 400, /must be a JSON object/],
      [{ command: "true", env: { A: 1 } }, 400, /"env.A" must be a string/],
      [{ command: "true", env: { "A=B": "x" } }, 400, /environment cannot hold/],
      [{ command: "true", waitForPorts: [70000] }, 400, /waitForPorts/],
      [{ command: "true", timeout: "soon" }, 400, /must be an integer/],
      [{ command: "true", name: "n".repeat(300) }, 400, /at most 256/],
      [{ command: "true", workingDir: "/nowhere" }, 422, /does not exist/],
      [{ command: "true", workingDir: "/etc/hostname" }, 422, /not a directory/],
    ];
    for (const [body, status, message] of cases) {
      const answer = await d.ask("POST", "/process", { body });
      assert.equal(answer.status, status, JSON.stringify(body));
      assert.match(answer.json.error, message);
      assert.deepEqual(Object.keys(answer.json), ["error"]);
    }
  });

  await t.test("a running name is taken, an ended one is free and its output is kept by pid", async () => {
    await d.ask("POST", "/process", { body: { command: "sleep 100", name: "taken" } });
    const second = await d.exec("true", { name: "taken" });
    assert.equal(second.status, 400);
    assert.match(second.json.error, /already exists and is running/);
    await d.ask("DELETE", "/process/taken");
    await eventually(async () => (await d.ask("GET", "/process/taken")).json.status === "stopped");
    const one = (await d.exec("echo one", { name: "taken" })).json;
    const two = (await d.exec("echo two", { name: "taken" })).json;
    assert.equal((await d.ask("GET", "/process/taken")).json.stdout, "two\n");
    assert.equal((await d.ask("GET", `/process/${one.pid}`)).json.stdout, "one\n");
    assert.equal((await d.ask("GET", `/process/${two.pid}/logs`)).json.logs, "two\n");
  });

  await t.test("names are free text", async () => {
    for (const name of ["../../etc/x", "a b", ".hidden", "ü\n", "%41", "x".repeat(256)]) {
      assert.equal((await d.exec("echo ok", { name })).json.stdout, "ok\n");
      const found = await d.ask("GET", `/process/${encodeURIComponent(name)}`);
      assert.equal(found.json.name, name);
    }
    assert.ok(!existsSync("/etc/x.stdout.log"));
    assert.equal((await d.ask("GET", "/process/%ff")).status, 400);
  });

  await t.test("a timeout bounds the wait, not the process", async () => {
    const answer = await d.exec("sleep 30", { timeout: 1, name: "slow" });
    assert.equal(answer.status, 422);
    assert.equal(answer.json.error, "process timed out after 1 seconds");
    assert.equal((await d.ask("GET", "/process/slow")).json.status, "running");
    await d.ask("DELETE", "/process/slow/kill");
  });

  await t.test("death by signal is -1", async () => {
    const { json } = await d.exec("kill -9 $$");
    assert.deepEqual([json.status, json.exitCode], ["failed", -1]);
  });

  await t.test("unknown and ended processes are 404", async () => {
    for (const [method, path] of [
      ["GET", "/process/none"],
      ["GET", "/process/none/logs"],
      ["GET", "/process/none/logs/stream"],
      ["DELETE", "/process/none"],
      ["DELETE", "/process/none/kill"],
      ["DELETE", "/process/first"],
      ["DELETE", "/process/first/kill"],
    ] as const) {
      const answer = await d.ask(method, path);
      assert.equal(answer.status, 404, `${method} ${path}`);
      assert.equal(typeof answer.json.error, "string");
    }
  });

  await t.test("lists everything", async () => {
    const { json } = await d.ask("GET", "/process");
    assert.ok(Array.isArray(json));
    assert.ok(json.some((one: { name: string }) => one.name === "first"));
  });
});

test("where everything is to go early when memory runs out, commands start all the same", { skip }, async () => {
  const file = "/proc/self/oom_score_adj";
  const own = readFileSync(file, "utf8");
  const early = Math.max(900, Number(own));
  writeFileSync(file, String(early));
  try {
    await using d = await startSandboxd();
    assert.equal(Number((await d.exec(`cat ${file}`)).json.stdout), early);
  } finally {
    writeFileSync(file, own);
  }
});

test("ending processes", { skip }, async (t) => {
  await using d = await startSandboxd();

  await t.test("stop reaches the whole group", async () => {
    await d.ask("POST", "/process", { body: { command: "sleep 1000 & echo $! > child; wait", name: "group" } });
    await eventually(
      () => existsSync(join(d.workDir, "child")) && readFileSync(join(d.workDir, "child"), "utf8") !== "",
    );
    const child = readFileSync(join(d.workDir, "child"), "utf8").trim();
    assert.equal((await d.ask("DELETE", "/process/group")).status, 200);
    await eventually(
      () => !existsSync(`/proc/${child}`) || readFileSync(`/proc/${child}/stat`, "utf8").includes(") Z "),
    );
    await eventually(async () => (await d.ask("GET", "/process/group")).json.status === "stopped");
  });

  await t.test("a process that ignores SIGTERM runs on until it is killed", async () => {
    await d.ask("POST", "/process", {
      body: { command: "trap '' TERM; echo up; while :; do sleep 0.05; done", name: "stubborn" },
    });
    await eventually(async () => (await d.ask("GET", "/process/stubborn")).json.stdout === "up\n");
    assert.equal((await d.ask("DELETE", "/process/stubborn")).status, 200);
    assert.equal((await d.ask("GET", "/process/stubborn")).json.status, "running");
    assert.equal((await d.ask("DELETE", "/process/stubborn/kill")).status, 200);
    await eventually(async () => (await d.ask("GET", "/process/stubborn")).json.status === "killed");
  });

  await t.test("keepAlive counts, and ends with its time", async () => {
    await d.ask("POST", "/process", { body: { command: "sleep 100", keepAlive: true, timeout: 3, name: "kept" } });
    assert.equal((await d.ask("GET", "/activity", { socket: "control" })).json.keepAlive, 1);
    await eventually(async () => (await d.ask("GET", "/process/kept")).json.status === "killed");
    assert.match((await d.ask("GET", "/process/kept")).json.stdout, /time is up/);
    assert.equal((await d.ask("GET", "/activity", { socket: "control" })).json.keepAlive, 0);
  });

  await t.test("restartOnFailure keeps pid and name, and counts", async () => {
    const { json } = await d.exec("echo run; exit 7", { restartOnFailure: true, maxRestarts: 1, name: "again" });
    assert.deepEqual([json.status, json.exitCode, json.restartCount], ["failed", 7, 1]);
    assert.match(json.stdout, /^run\n\[exited with code 7; restart 1 \(of 1\)\]\nrun\n$/);
  });

  await t.test("a restart can be stopped in its pause", async () => {
    await d.ask("POST", "/process", {
      body: { command: "exit 1", restartOnFailure: true, maxRestarts: -1, name: "loop" },
    });
    await eventually(async () => (await d.ask("GET", "/process/loop")).json.restartCount >= 1);
    assert.equal((await d.ask("DELETE", "/process/loop")).status, 200);
    await eventually(async () => (await d.ask("GET", "/process/loop")).json.status === "stopped");
  });
});

test("waiting for ports", { skip }, async (t) => {
  await using d = await startSandboxd();
  const listen = (port: number, host: string) =>
    `${process.execPath} -e "require('node:net').createServer().listen(${port}, '${host}')"`;

  await t.test("any address counts, also loopback", async () => {
    for (const [port, host] of [
      [await freePort(), "127.0.0.1"],
      [await freePort(), "0.0.0.0"],
    ] as const) {
      const { status, json } = await d.ask("POST", "/process", {
        body: { command: listen(port, host), waitForPorts: [port], timeout: 60, name: `p${port}` },
      });
      assert.equal(status, 200);
      assert.equal(json.status, "running");
      const { json: ports } = await d.ask("GET", `/network/process/${json.pid}/ports`);
      const found = ports.ports.find((one: { localPort: number }) => one.localPort === port);
      assert.deepEqual([found.state, found.protocol, found.localAddr], ["LISTEN", "tcp", host]);
    }
  });

  await t.test("time runs out", async () => {
    const answer = await d.ask("POST", "/process", {
      body: { command: "sleep 50", waitForPorts: [await freePort()], timeout: 1 },
    });
    assert.equal(answer.status, 422);
    assert.match(answer.json.error, /timed out waiting for ports \d+/);
  });

  await t.test("a process that fails first is not waited for", async () => {
    const answer = await d.ask("POST", "/process", { body: { command: "exit 2", waitForPorts: [await freePort()] } });
    assert.equal(answer.status, 422);
    assert.match(answer.json.error, /exit code 2/);
  });
});

test("streams", { skip }, async (t) => {
  await using d = await startSandboxd();
  const streaming = { accept: "text/event-stream" };

  await t.test("exec streams one JSON object per line and ends with the result", async () => {
    const response = await d.open("POST", "/process", {
      headers: streaming,
      body: { command: "echo a; echo b >&2; sleep 0.2; printf 'ü'", waitForCompletion: true },
    });
    assert.match(response.headers["content-type"] ?? "", /^application\/x-ndjson/);
    const events: { type: string; data: string }[] = [];
    for await (const line of linesOf(response)) events.push(JSON.parse(line));
    const of = (type: string) =>
      events
        .filter((event) => event.type === type)
        .map((event) => event.data)
        .join("");
    assert.equal(of("stdout"), "a\nü");
    assert.equal(of("stderr"), "b\n");
    assert.equal(events.at(-1)?.type, "result");
    const result = JSON.parse(events.at(-1)?.data ?? "{}");
    assert.deepEqual([result.status, result.logs], ["completed", "a\nüb\n"]);
  });

  await t.test("output arrives while the process runs, and leaving does not end it", async () => {
    const response = await d.open("POST", "/process", {
      headers: streaming,
      body: { command: "echo first; sleep 60", name: "left" },
    });
    for await (const line of linesOf(response)) {
      assert.deepEqual(JSON.parse(line), { type: "stdout", data: "first\n" });
      break;
    }
    response.destroy();
    assert.equal((await d.ask("GET", "/process/left")).json.status, "running");
  });

  await t.test("the log stream prefixes every line exactly once", async () => {
    const command = "for i in 1 2 3; do echo o$i; echo e$i >&2; done; sleep 0.3; echo late; printf 'no newline'";
    await d.ask("POST", "/process", { body: { command, name: "lines" } });
    for (const round of ["live", "replay"]) {
      const response = await d.open("GET", "/process/lines/logs/stream");
      assert.match(response.headers["content-type"] ?? "", /^text\/plain/);
      const lines: string[] = [];
      for await (const line of linesOf(response)) lines.push(line);
      const of = (prefix: string) => lines.filter((line) => line.startsWith(prefix));
      assert.deepEqual(
        of("stdout:"),
        ["stdout:o1", "stdout:o2", "stdout:o3", "stdout:late", "stdout:no newline"],
        round,
      );
      assert.deepEqual(of("stderr:"), ["stderr:e1", "stderr:e2", "stderr:e3"], round);
      assert.equal(lines.length, 8);
    }
  });

  await t.test("a character split between two writes stays whole", async () => {
    const { json } = await d.exec("printf '\\303'; sleep 0.1; printf '\\274\\377'");
    assert.equal(json.stdout, "ü\ufffd");
  });
});

const MARKER = "[... older output was dropped ...]";

test("floods of output", { skip }, async (t) => {
  await using d = await startSandboxd();
  const memoryMb = () =>
    Number(/RssAnon:\s+(\d+)/.exec(readFileSync(`/proc/${d.process.pid}/status`, "utf8"))?.[1]) / 1024;

  await t.test("a file keeps its tail, marked, and its disk space is given back", async () => {
    const { json } = await d.exec("yes 0123456789abcdef | head -c 100000000; echo; echo THE END", { name: "flood" });
    assert.equal(json.status, "completed");
    const [mark, ...lines] = json.stdout.split("\n");
    assert.equal(mark, MARKER);
    assert.deepEqual(
      lines.filter((line: string) => line !== "0123456789abcdef"),
      ["THE END", ""],
    );
    assert.ok(json.stdout.length <= 33 * 1024 * 1024, String(json.stdout.length));
    const file = statSync(join(d.folder, "logs", "flood.stdout.log"));
    await eventually(() => statSync(join(d.folder, "logs", "flood.stdout.log")).blocks * 512 <= 33 * 1024 * 1024);
    assert.ok(file.size > 0);
    assert.ok(memoryMb() < 120, `${memoryMb()} MB`);
  });

  await t.test("what is dropped while an answer is sent leaves a mark, and no line comes twice", async () => {
    const command = "seq 1000000 2500000; until [ -e more ]; do sleep 0.01; done; seq 2500001 9999999";
    await d.ask("POST", "/process", { body: { command, name: "moving" } });
    const file = join(d.folder, "logs", "moving.stdout.log");
    await eventually(() => statSync(file).size === 1_500_001 * 8);
    const response = await d.open("GET", "/process/moving/logs");
    writeFileSync(join(d.workDir, "more"), "");
    await eventually(async () => (await d.ask("GET", "/process/moving")).json.status === "completed");
    const { logs } = JSON.parse(await text(response));
    const [before = "", after, ...others] = logs.split(`\n${MARKER}\n`);
    assert.deepEqual([typeof after, others], ["string", []]);
    // The last line before the marker may be cut.
    const lines = [...before.split("\n").slice(0, -1), ...after.split("\n").filter(Boolean)].map(Number);
    assert.ok(lines.length > 0);
    assert.deepEqual(
      lines,
      lines.toSorted((a, b) => a - b),
    );
    assert.equal(new Set(lines).size, lines.length);
  });

  await t.test("looking at it shows 64 kB", async () => {
    const { json } = await d.ask("GET", "/process/flood");
    assert.ok(json.stdout.length <= 65 * 1024);
    assert.ok(json.stdout.startsWith(`${MARKER}\n0123`));
  });

  await t.test("a stream that nobody reads does not grow the daemon", async () => {
    const response = await d.open("POST", "/process", {
      headers: { accept: "text/event-stream" },
      body: { command: "yes | head -c 200000000", name: "unread" },
    });
    response.pause();
    await eventually(async () => (await d.ask("GET", "/process/unread")).json.status === "completed");
    assert.ok(memoryMb() < 120, `${memoryMb()} MB`);
    response.destroy();
  });

  await t.test("one endless line is cut, not collected", async () => {
    await d.ask("POST", "/process", { body: { command: "head -c 5000000 /dev/zero | tr '\\0' x", name: "longline" } });
    const response = await d.open("GET", "/process/longline/logs/stream");
    let total = 0;
    for await (const line of linesOf(response)) {
      assert.ok(line.startsWith("stdout:"));
      total += line.length - "stdout:".length;
    }
    assert.equal(total, 5_000_000);
  });
});
