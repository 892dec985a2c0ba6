import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { freePort } from "../../../test/free-port.ts";
import { eventually, linesOf, skip, startSandboxd, type TestDaemon } from "../../../test/sandboxd-harness.ts";
import { steadiness } from "../network/on-demand.ts";
import { listenerInodes } from "../network/sockets.ts";
import { statOf } from "../process/tree.ts";

/** One line of an execution; the tests check it member by member. */
type Line = ReturnType<typeof JSON.parse>;

const lacks = ["python3", "node"].find((program) => spawnSync(program, ["--version"]).status !== 0);

describe("the code interpreter", { skip: skip || (lacks ? `${lacks} is not installed` : false) }, () => {
  let d: TestDaemon;
  let ports: number[];

  before(async () => {
    ports = [await freePort(), await freePort()];
    const env = Object.fromEntries(ports.map((port) => [`BERTH_SERVE_${port}`, "code-interpreter"]));
    d = await startSandboxd({ config: { env } });
  });
  after(async () => {
    await d.ask("DELETE", "/process/code-interpreter");
    await d[Symbol.asyncDispose]();
  });

  async function open(method: string, path: string, body?: unknown, port = ports[0] ?? 0): Promise<IncomingMessage> {
    const { line, socket } = await d.portDoor(port);
    assert.equal(line, "OK\n");
    const sent = request({ createConnection: () => socket, method, path, headers: { host: "sandbox" } });
    sent.once("socket", () => socket.resume());
    sent.end(body === undefined ? undefined : JSON.stringify(body));
    const [answer] = (await once(sent, "response")) as [IncomingMessage];
    return answer.setEncoding("utf8");
  }

  async function ask(
    method: string,
    path: string,
    body?: unknown,
  ): Promise<{ status: number | undefined; json: Line }> {
    const answer = await open(method, path, body);
    let text = "";
    for await (const chunk of answer) text += chunk;
    return { status: answer.statusCode, json: text === "" ? null : JSON.parse(text) };
  }

  async function run(code: string, more: Record<string, unknown> = {}): Promise<Line[]> {
    const lines: Line[] = [];
    for await (const line of linesOf(await open("POST", "/execute", { code, ...more }))) lines.push(JSON.parse(line));
    return lines;
  }

  const made = async (language: string): Promise<string> => (await ask("POST", "/contexts", { language })).json.id;
  const textOf = (lines: Line[], type = "stdout"): string =>
    lines.flatMap((line) => (line.type === type ? [line.text] : [])).join("");
  const mainOf = (lines: Line[]): string | undefined => lines.find(({ is_main_result: isMain }) => isMain)?.text;
  const errorOf = (lines: Line[]): Line => lines.find(({ type }) => type === "error");

  /** Reads an execution up to the line that the check is true for; the rest comes from the iterator. */
  async function upTo(lines: AsyncIterator<string>, check: (line: Line) => boolean): Promise<Line> {
    for (;;) {
      const { value, done } = await lines.next();
      assert.ok(!done, "the execution ended early");
      const line = JSON.parse(value);
      if (check(line)) return line;
    }
  }

  /** Code that goes on when a file of that name is there. */
  const untilFile = (name: string): string =>
    `import os, time\nwhile not os.path.exists(${JSON.stringify(join(d.workDir, name))}): time.sleep(0.005)`;

  test("the first connection starts it; contexts keep their variables", async () => {
    assert.deepEqual((await d.ask("GET", "/process")).json, []);
    assert.deepEqual(await run("x = 41\nx + 1"), [
      { type: "number_of_executions", execution_count: 1 },
      { type: "result", text: "42", is_main_result: true },
    ]);
    const again = await run("print(x)\n'text'", { context_id: "default" });
    assert.deepEqual([textOf(again), mainOf(again), errorOf(again)], ["41\n", "text", undefined]);
    const other = await made("python3");
    assert.equal(errorOf(await run("x", { context_id: other })).name, "NameError");
    assert.equal(mainOf(await run("x")), "41");
    assert.equal(mainOf(await run("x;")), undefined, "a semicolon hides the value");
    const { json } = await ask("GET", "/contexts");
    assert.deepEqual(json, [
      { id: "python", language: "python", cwd: d.workDir },
      { id: other, language: "python", cwd: d.workDir },
    ]);
    const second = await open("GET", "/contexts", undefined, ports[1]);
    assert.equal(second.statusCode, 200, "the other port leads to the same program");
    second.resume();
    assert.deepEqual(
      (await d.ask("GET", "/process")).json.map(({ name }: Line) => name),
      ["code-interpreter"],
    );
  });

  test("output comes while the code runs, in order, also that of child processes", async () => {
    const code = `print("one"); os = __import__("os"); os.system("echo two")\n${untilFile("go")}\nprint("three")`;
    const lines = linesOf(await open("POST", "/execute", { code }));
    await upTo(lines, ({ text }) => text?.includes("two"));
    writeFileSync(join(d.workDir, "go"), "");
    await upTo(lines, ({ text }) => text?.includes("three"));
    assert.equal((await lines.next()).done, true);
  });

  test("a result comes after the output before it, and before the output after it", async () => {
    const codes: Record<string, string> = {
      python: "for n in range(50): print(n, end=' '); display(n)\nprint('last', end='')\nn",
      javascript:
        "for (let n = 0; n < 50; n += 1) { process.stdout.write(n + ' '); await display(n); }\nprocess.stdout.write('last'); 49",
    };
    const expected = [...Array.from({ length: 50 }, (_, n) => [`${n} `, String(n)]).flat(), "last", "49"];
    for (const [language, code] of Object.entries(codes)) {
      const texts = (await run(code, { language })).flatMap(({ text }) => (text === undefined ? [] : [text]));
      assert.deepEqual(texts, expected, language);
    }
    const closed = await run("import os\nos.close(1)\ndisplay(7)\n8");
    assert.deepEqual([errorOf(closed), mainOf(closed)], [undefined, "8"], "a closed output holds nothing up");
  });

  test("variables of one execution, a folder, and top-level await", async () => {
    const read = "import os; os.environ.get('SPOT')";
    assert.equal(mainOf(await run(read, { env_vars: { SPOT: "here" } })), "here");
    assert.equal(mainOf(await run(read)), undefined);
    const { json } = await ask("POST", "/contexts", { cwd: "/" });
    assert.equal(mainOf(await run("import os; os.getcwd()", { context_id: json.id })), "/");
    assert.equal(mainOf(await run("import asyncio\nawait asyncio.sleep(0)\n7")), "7");
  });

  test("rich results: HTML, PNG, JSON, other media types, and display", async () => {
    const code = `class Rich:
  def __repr__(self): return "rich"
  def _repr_html_(self): return "<b>rich</b>"
  def _repr_png_(self): return b"\\x89PNG"
  def _repr_json_(self): return {"a": 1}
  def _repr_mimebundle_(self, include=None, exclude=None): return {"text/x-own": "own"}
display(Rich())
Rich()`;
    const rich = { text: "rich", html: "<b>rich</b>", png: "iVBORw==", json: { a: 1 }, extra: { "text/x-own": "own" } };
    assert.deepEqual((await run(code)).slice(1), [
      { type: "result", is_main_result: false, ...rich },
      { type: "result", is_main_result: true, ...rich },
    ]);
    const shown = await run('await display({ "text/html": "<i>js</i>" }, { raw: true }); 1', {
      language: "javascript",
    });
    assert.deepEqual(shown.slice(1), [
      { type: "result", is_main_result: false, html: "<i>js</i>" },
      { type: "result", is_main_result: true, text: "1" },
    ]);
  });

  test("errors have a name, a value and a traceback of the code alone", async () => {
    const failed = errorOf(await run("def f():\n  raise ValueError('no')\nf()"));
    assert.deepEqual([failed.name, failed.value], ["ValueError", "no"]);
    assert.match(failed.traceback, /^Traceback.*\n {2}File "<cell \d+>", line 3, in <module>\n/);
    assert.doesNotMatch(failed.traceback, /in evaluate|in run/);
    assert.equal(errorOf(await run("def f(:")).name, "SyntaxError");
    const thrown = errorOf(await run("throw new TypeError('bad')", { language: "js" }));
    assert.deepEqual([thrown.name, thrown.value], ["TypeError", "bad"]);
    assert.doesNotMatch(thrown.traceback, /node:/);
    const unparsed = errorOf(await run("const a = 1;\nlet b = ;", { language: "js" }));
    assert.deepEqual([unparsed.name, unparsed.value], ["SyntaxError", "Unexpected ; (line 2)"]);
  });

  test("JavaScript and TypeScript: declarations stay, import, await and require work", async () => {
    const js = { language: "javascript" };
    assert.equal(mainOf(await run("const a = await Promise.resolve(2); a", js)), "2");
    assert.equal(mainOf(await run("import { join } from 'node:path'; const a = join('x', 'y')", js)), undefined);
    assert.equal(mainOf(await run("a + typeof require('node:fs').readFileSync", js)), "x/yfunction");
    assert.equal(textOf(await run("console.log('out'); console.error('err')", js), "stderr"), "err\n");
    const ts = await run("interface P { x: number }\nconst p: P = { x: 3 };\np.x", { language: "typescript" });
    assert.equal(mainOf(ts), "3");
  });

  test("ten megabytes of output arrive whole", async () => {
    const text = textOf(await run("for i in range(100_000): print(f'{i:099d}')"));
    assert.equal(text.length, 10_000_000);
    assert.equal(text.slice(-7), "099999\n");
    const umlauts = textOf(await run("print('ü' * 300_000)"));
    assert.ok(umlauts === `${"ü".repeat(300_000)}\n`, "no character is cut in two");
  });

  test("code that never ends is interrupted when its caller goes, and by its time limit; variables stay", async () => {
    const endless: Record<string, string> = {
      python: "kept = 5\nprint('begun')\nwhile True: pass",
      javascript: "var kept = 5; console.log('begun'); while (true) {}",
    };
    for (const [language, code] of Object.entries(endless)) {
      const answer = await open("POST", "/execute", { code, language });
      await upTo(linesOf(answer), ({ text }) => text?.startsWith("begun"));
      answer.destroy();
      assert.equal(mainOf(await run("kept", { language })), "5", language);
    }
    const late = errorOf(await run("while True: pass", { timeout_ms: 50 }));
    assert.deepEqual([late.name, late.value], ["TimeoutError", "The code ran for 50 ms."]);
    const waiting = errorOf(await run("await new Promise(() => {})", { timeout_ms: 50, language: "js" }));
    assert.equal(waiting.name, "TimeoutError");
    assert.equal(mainOf(await run("kept")), "5");
  });

  test("hostile code harms neither other contexts nor the protocol", async () => {
    const [victim, hostile] = [await made("python"), await made("python")];
    const code = `print("begun")\n${untilFile("over")}\n"whole"`;
    const lines = linesOf(await open("POST", "/execute", { code, context_id: victim }));
    await upTo(lines, ({ text }) => text?.startsWith("begun"));
    const inHostile = (each: string): Promise<Line[]> => run(each, { context_id: hostile });

    const fake = '{"type":"result","text":"fake","is_main_result":true}';
    const printed = await inHostile(`print(${JSON.stringify(fake)})`);
    assert.deepEqual([textOf(printed), mainOf(printed)], [`${fake}\n`, undefined]);
    const everywhere = (text: string): string =>
      `import os\nfor fd in range(3, 40):\n  try: os.write(fd, ${JSON.stringify(text)}.encode())\n  except OSError: pass`;
    await inHostile(everywhere('{"type":"done"}\n'));
    await inHostile(everywhere('{"type":"done","number":2}\n'));
    assert.equal(textOf(await inHostile("print('own')")), "own\n");
    assert.equal(errorOf(await inHostile(`${everywhere("nonsense\n")}\nwhile True: pass`)).name, "ContextDied");
    for (const each of ["os.kill(os.getpid(), 9)", "os.closerange(0, 200)", "os._exit(0)", "os.abort()"]) {
      const died = errorOf(await inHostile(`import os\n${each}`));
      assert.deepEqual([died?.name, mainOf(await inHostile("1 + 1"))], ["ContextDied", "2"], each);
    }
    const closed = await inHostile("import os\nos.close(1); os.dup2(os.open('/dev/null', 1), 2)\n3");
    assert.deepEqual([mainOf(closed), textOf(await inHostile("print('back')"))], ["3", "back\n"]);
    const forked = await inHostile("import os\nchild = os.fork()\nif child: os.waitpid(child, 0)\nos.getpid() == 0");
    assert.deepEqual([forked.length, mainOf(await inHostile("child > 0"))], [3, "True"]);
    const deaf = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('begun')\nwhile True: pass";
    const stubborn = linesOf(await open("POST", "/execute", { code: deaf, context_id: hostile }));
    await upTo(stubborn, ({ text }) => text?.startsWith("begun"));
    assert.equal((await ask("POST", `/contexts/${hostile}/interrupt`)).status, 204);
    assert.match((await upTo(stubborn, ({ type }) => type === "error")).value, /SIGKILL.*variables are gone/);

    writeFileSync(join(d.workDir, "over"), "");
    assert.equal((await upTo(lines, ({ type }) => type === "result" || type === "error")).text, "whole");
    assert.equal((await lines.next()).done, true);
  });

  test("a context is restarted and deleted, also while its code runs", async () => {
    const id = await made("python");
    await run("y = 1", { context_id: id });
    const busy = linesOf(await open("POST", "/execute", { code: "print('begun')\nwhile True: pass", context_id: id }));
    await upTo(busy, ({ text }) => text?.startsWith("begun"));
    assert.equal((await ask("POST", `/contexts/${id}/restart`)).status, 204);
    assert.equal((await upTo(busy, ({ type }) => type === "error")).name, "ContextRestarted");
    assert.equal(errorOf(await run("y", { context_id: id })).name, "NameError");
    assert.equal((await ask("DELETE", `/contexts/${id}`)).status, 204);
    assert.equal((await ask("POST", "/execute", { code: "1", context_id: id })).status, 404);
  });

  test("requests that make no sense are refused with a sentence", async () => {
    const refused: [number, string, string, unknown][] = [
      [400, "POST", "/execute", {}],
      [400, "POST", "/execute", { code: 1 }],
      [400, "POST", "/execute", { code: "1", language: "cobol" }],
      [400, "POST", "/execute", { code: "1", language: "python", context_id: "python" }],
      [400, "POST", "/execute", { code: "1", env_vars: { a: 1 } }],
      [400, "POST", "/execute", { code: "1", timeout_ms: -1 }],
      [400, "POST", "/contexts", []],
      [400, "POST", "/contexts", { cwd: "/no/such/folder" }],
      [404, "DELETE", "/contexts/none", undefined],
      [404, "GET", "/api/contents", undefined],
      [405, "PUT", "/execute", { code: "1" }],
    ];
    for (const [status, method, path, body] of refused) {
      const answer = await ask(method, path, body);
      assert.deepEqual([answer.status, typeof answer.json.error], [status, "string"], `${method} ${path}`);
    }
  });

  test("a killed interpreter takes its busy workers along, and is started again by the next connection", async (t) => {
    const pids: number[] = [];
    const end = (pid: number): boolean => {
      try {
        return process.kill(pid, "SIGKILL");
      } catch {
        return false; // it has ended, as it should
      }
    };
    t.after(() => pids.forEach(end));
    for (const [language, code] of [
      ["python", "import os\nprint(os.getpid(), flush=True)\nwhile True: pass"],
      ["javascript", "require('fs').writeSync(1, String(process.pid)); for (;;);"],
    ] as const) {
      const busy = linesOf(await open("POST", "/execute", { code, context_id: await made(language) }));
      pids.push(Number((await upTo(busy, ({ type }) => type === "stdout")).text));
    }
    await d.ask("DELETE", "/process/code-interpreter/kill");
    await eventually(async () => pids.every((pid) => statOf(pid) === null || statOf(pid)?.state === "Z"));
    await eventually(async () => (await d.ask("GET", "/process/code-interpreter")).json.status === "killed");
    await eventually(() => ports.every((port) => listenerInodes(port).length === 0));
    assert.equal(mainOf(await run("2 + 2")), "4");
  });
});

describe("programs that a connection starts", { skip }, () => {
  test("a shell line serves its port; one that ends tells its exit code", async () => {
    const [good, bad] = [await freePort(), await freePort()];
    const page = `require("node:http").createServer((_, res) => res.end("here")).listen(process.env.PORT)`;
    const env = { [`BERTH_SERVE_${good}`]: `node -e '${page}'`, [`BERTH_SERVE_${bad}`]: "exit 3" };
    await using d = await startSandboxd({ config: { env } });
    const { line, socket } = await d.portDoor(good);
    socket.destroy();
    assert.equal(line, "OK\n");
    const refused = await d.portDoor(bad);
    refused.socket.destroy();
    assert.match(refused.line, new RegExp(`^ERR .*serve-${bad} of BERTH_SERVE_${bad} ended with exit code 3`));
    assert.match((await d.portDoor(await freePort())).line, /^ERR nothing listens/);
  });

  test("a listener that looks for a moment whether the port is free is not the program's own", () => {
    const isSteady = steadiness();
    const looks: [string[], number][] = [
      [[], 0],
      [["1"], 10],
      [["1"], 50],
      [["2"], 60],
      [[], 100],
      [[], 200],
      [["3"], 210],
      [["3", "4"], 250],
      [["3", "4"], 299],
    ];
    for (const [inodes, nowMs] of looks) assert.equal(isSteady(inodes, nowMs), false, `${inodes} at ${nowMs} ms`);
    assert.equal(isSteady(["3", "4"], 300), true);
  });
});
