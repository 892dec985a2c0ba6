/** The Jupyter kernel protocol of the code interpreter, with the WebSocket of Node.js as client. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { freePort } from "../../../../test/free-port.ts";
import { eventually, skip, startSandboxd, type TestDaemon } from "../../../../test/sandboxd-harness.ts";
import { V1_PROTOCOL } from "./framing.ts";

/** One message of the kernel; the tests check it member by member. */
type Received = ReturnType<typeof JSON.parse>;

const lacks = ["python3", "node"].find((program) => spawnSync(program, ["--version"]).status !== 0);

class Client implements AsyncDisposable {
  readonly socket: WebSocket;
  readonly received: Received[] = [];
  readonly #isV1: boolean;

  constructor(url: string, isV1 = false) {
    this.socket = new WebSocket(url, isV1 ? [V1_PROTOCOL] : []);
    this.socket.binaryType = "arraybuffer";
    this.#isV1 = isV1;
    this.socket.addEventListener("message", ({ data }) => {
      this.received.push(typeof data === "string" ? JSON.parse(data) : read(Buffer.from(data as ArrayBuffer)));
    });
  }

  async opened(): Promise<this> {
    if (this.socket.readyState !== WebSocket.OPEN) await once(this.socket, "open");
    return this;
  }

  send(type: string, content: Record<string, unknown> = {}, channel = "shell"): string {
    const id = randomUUID();
    const header = { msg_id: id, msg_type: type, session: "s", username: "u", version: "5.3", date: "2026-01-01" };
    if (this.#isV1) this.socket.send(written(channel, [header, {}, {}, content]));
    else this.socket.send(JSON.stringify({ channel, header, parent_header: {}, metadata: {}, content, buffers: [] }));
    return id;
  }

  of(id: string): Received[] {
    return this.received.filter(({ parent_header: parent }) => parent.msg_id === id);
  }

  async reply(id: string): Promise<Received> {
    const found = (): Received => this.of(id).find(({ channel }) => channel !== "iopub");
    await eventually(() => found() !== undefined);
    return found().content;
  }

  /** Every message about a request, up to the word that the kernel is idle. */
  async all(id: string): Promise<Received[]> {
    await this.reply(id);
    await eventually(() => this.of(id).some(({ content }) => content.execution_state === "idle"));
    return this.of(id);
  }

  ask(type: string, content?: Record<string, unknown>, channel?: string): Promise<Received> {
    return this.reply(this.send(type, content, channel));
  }

  execute(code: string, more: Record<string, unknown> = {}): Promise<Received[]> {
    return this.all(this.send("execute_request", { code, ...more }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.socket.readyState === WebSocket.CLOSED) return;
    this.socket.close();
    await once(this.socket, "close");
  }
}

function written(channel: string, parts: unknown[]): Buffer {
  const all = [channel, ...parts.map((part) => JSON.stringify(part))].map((part) => Buffer.from(part));
  const index = Buffer.alloc(8 * (all.length + 2));
  let offset = index.byteLength;
  for (const [place, number] of [all.length + 1, ...all.map(({ byteLength }) => byteLength)].entries()) {
    index.writeBigUInt64LE(BigInt(place === 0 ? number : offset), 8 * place);
    if (place > 0) offset += number;
  }
  index.writeBigUInt64LE(BigInt(offset), 8 * (all.length + 1));
  return Buffer.concat([index, ...all]);
}

function read(bytes: Buffer): Received {
  const at = (place: number): number => Number(bytes.readBigUInt64LE(8 * place));
  const parts = Array.from({ length: at(0) - 1 }, (_, place) => bytes.toString("utf8", at(place + 1), at(place + 2)));
  const [channel, header, parent, , content] = parts;
  const [h, p, c] = [header, parent, content].map((part) => JSON.parse(part ?? ""));
  return { channel, header: h, parent_header: p, content: c };
}

describe("the Jupyter kernel protocol", { skip: skip || (lacks ? `${lacks} is not installed` : false) }, () => {
  let d: TestDaemon;
  let place: string;

  before(async () => {
    const port = await freePort();
    d = await startSandboxd({ config: { env: { [`BERTH_SERVE_${port}`]: "code-interpreter" } } });
    const { line, socket } = await d.portDoor(port);
    assert.equal(line, "OK\n");
    socket.destroy();
    place = `127.0.0.1:${port}`;
  });
  after(async () => {
    await d.ask("DELETE", "/process/code-interpreter");
    await d[Symbol.asyncDispose]();
  });

  async function ask(method: string, path: string, body?: unknown): Promise<{ status: number; json: Received }> {
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const answer = await fetch(`http://${place}${path}`, { method, ...sent });
    const text = await answer.text();
    return { status: answer.status, json: text === "" ? null : JSON.parse(text) };
  }

  const started = async (name = "python3"): Promise<string> => (await ask("POST", "/api/kernels", { name })).json.id;
  const connected = (id: string, isV1 = false): Promise<Client> =>
    new Client(`ws://${place}/api/kernels/${id}/channels?session_id=s`, isV1).opened();
  const types = (messages: Received[]): string[] => messages.map(({ header }) => header.msg_type);
  const contentOf = (messages: Received[], type: string): Received =>
    messages.find(({ header }) => header.msg_type === type)?.content;

  test("kernels are contexts, and their folder is that of the notebook", async () => {
    assert.match((await ask("GET", "/api")).json.version, /^2\./);
    const { json: specs } = await ask("GET", "/api/kernelspecs");
    assert.deepEqual(
      [specs.default, Object.keys(specs.kernelspecs)],
      ["python3", ["python3", "javascript", "typescript"]],
    );
    assert.equal((await ask("GET", "/api/kernelspecs/javascript")).json.spec.language, "javascript");
    assert.equal((await ask("GET", "/api/kernelspecs/constructor")).status, 404);
    mkdirSync(join(d.workDir, "notes"));
    const made = await ask("POST", "/api/kernels", { name: "python3", path: "notes/none/first.ipynb" });
    assert.equal(made.status, 201);
    const { id } = made.json;
    assert.equal((await ask("GET", `/contexts/${id}`)).json.cwd, join(d.workDir, "notes"));
    assert.deepEqual((await ask("GET", `/api/kernels/${id}`)).json, made.json);
    assert.deepEqual((await ask("GET", "/api/kernels")).json, [made.json]);
    assert.deepEqual([made.json.name, made.json.execution_state, made.json.connections], ["python3", "idle", 0]);
    assert.equal((await ask("GET", "/api/status")).json.kernels, 1);
    assert.equal((await ask("GET", `/api/kernels/${id}/channels`)).status, 426);
    assert.equal((await ask("DELETE", `/api/kernels/${id}`)).status, 204);
    assert.equal((await ask("GET", `/contexts/${id}`)).status, 404);
    assert.equal((await ask("POST", "/api/kernels", { name: "cobol" })).status, 400);
  });

  for (const isV1 of [false, true])
    test(`an execution tells its output, result and end (${isV1 ? V1_PROTOCOL : "no subprotocol"})`, async () => {
      const id = await started();
      await using client = await connected(id, isV1);
      assert.equal(client.socket.protocol, isV1 ? V1_PROTOCOL : "");
      const info = await client.ask("kernel_info_request");
      assert.equal(info.language_info.name, "python");
      assert.match(info.language_info.version, /^3\./);
      const ran = await client.execute("import sys\nprint('out')\nprint('err', file=sys.stderr)\n'text'");
      const told = types(ran);
      assert.deepEqual([told[0], told[1]], ["status", "execute_input"]);
      assert.deepEqual(told.filter((type) => type === "stream").length, 2);
      assert.equal(contentOf(ran, "execute_result").data["text/plain"], "'text'");
      assert.equal(contentOf(ran, "execute_reply").status, "ok");
      assert.equal(contentOf(ran, "execute_reply").execution_count, 1);
      const rich = await client.execute("display({'text/html': '<b>1</b>'}, raw=True)");
      assert.deepEqual(contentOf(rich, "display_data").data, { "text/html": "<b>1</b>" });
      const failed = await client.execute("1 / 0");
      assert.equal(contentOf(failed, "error").ename, "ZeroDivisionError");
      assert.equal(contentOf(failed, "execute_reply").status, "error");
      const { json } = await ask("GET", `/api/kernels/${id}`);
      assert.deepEqual([json.connections, json.execution_state], [1, "idle"]);
    });

  test("the run-code call and a kernel share variables; an execution may be silent and uncounted", async () => {
    const id = await started("javascript");
    await using client = await connected(id);
    await client.execute("const word = 'shared'; word");
    const lines = await fetch(`http://${place}/execute`, {
      method: "POST",
      body: JSON.stringify({ code: "word", context_id: id }),
    });
    assert.match(await lines.text(), /"text":"shared"/);
    const silent = await client.execute("console.log(1); word", { silent: true });
    assert.deepEqual(types(silent).toSorted(), ["execute_reply", "status", "status"]);
    const { execution_count: count, user_expressions: expressions } = contentOf(
      await client.execute("word", { user_expressions: { constructor: "1" } }),
      "execute_reply",
    );
    assert.equal(count, 3);
    assert.equal(expressions.constructor.status, "error");
  });

  test("an error ends the executions that wait, unless the request says otherwise", async () => {
    await using client = await connected(await started());
    const [first, second] = ["raise ValueError('no')", "print('never')"].map((code) =>
      client.send("execute_request", { code }),
    );
    assert.equal((await client.reply(first ?? "")).ename, "ValueError");
    assert.deepEqual(await client.reply(second ?? ""), { status: "aborted" });
    const goesOn = client.send("execute_request", { code: "1 / 0", stop_on_error: false });
    const next = client.send("execute_request", { code: "2" });
    assert.equal((await client.reply(goesOn)).status, "error");
    assert.equal((await client.reply(next)).status, "ok");
  });

  test("every client sees what one of them runs; interrupts and restarts end it; the end closes them", async () => {
    const id = await started();
    await using one = await connected(id);
    await using two = await connected(id);
    const endless = "kept = 1\nprint('begun', flush=True)\nwhile True: pass";
    const run = one.send("execute_request", { code: endless });
    const sees = (client: Client, request: string): Promise<void> =>
      eventually(() => client.of(request).some(({ content }) => content.text?.includes("begun")));
    await Promise.all([sees(one, run), sees(two, run)]);
    assert.equal((await ask("GET", `/api/kernels/${id}`)).json.execution_state, "busy");
    assert.equal((await two.ask("interrupt_request", {}, "control")).status, "ok");
    assert.equal((await one.reply(run)).ename, "KeyboardInterrupt");
    const again = one.send("execute_request", { code: endless });
    await sees(one, again);
    assert.equal((await ask("POST", `/api/kernels/${id}/interrupt`)).status, 204);
    assert.equal((await one.reply(again)).ename, "KeyboardInterrupt");
    assert.equal(contentOf(await one.execute("kept"), "execute_result").data["text/plain"], "1");
    assert.equal((await ask("POST", `/api/kernels/${id}/restart`)).status, 200);
    assert.equal(contentOf(await one.execute("kept"), "error").ename, "NameError");
    const closed = Promise.all([one, two].map(({ socket }) => once(socket, "close")));
    assert.deepEqual(await one.ask("shutdown_request", { restart: false }, "control"), {
      status: "ok",
      restart: false,
    });
    await closed;
    assert.equal((await ask("GET", `/api/kernels/${id}`)).status, 404);
  });

  test("an execution goes on without its client", async () => {
    const id = await started();
    await using watcher = await connected(id);
    const leaver = await connected(id);
    const run = leaver.send("execute_request", {
      code: "import os, time\nprint('begun', flush=True)\nwhile not os.path.exists('left'): time.sleep(0.005)\n'over'",
    });
    await eventually(() => watcher.of(run).some(({ content }) => content.text?.includes("begun")));
    await leaver[Symbol.asyncDispose]();
    await eventually(async () => (await ask("GET", `/api/kernels/${id}`)).json.connections === 1);
    await d.exec("touch left");
    await eventually(() => watcher.of(run).some(({ content }) => content.execution_state === "idle"));
    assert.equal(contentOf(watcher.of(run), "execute_result").data["text/plain"], "'over'");
  });

  test("requests that kernels need not know are answered", async () => {
    await using client = await connected(await started("typescript"));
    assert.deepEqual(await client.ask("is_complete_request", { code: "1" }), { status: "unknown" });
    assert.deepEqual((await client.ask("complete_request", { code: "a", cursor_pos: 1 })).matches, []);
    assert.equal((await client.ask("inspect_request")).found, false);
    assert.deepEqual((await client.ask("history_request")).history, []);
    assert.deepEqual((await client.ask("comm_info_request")).comms, {});
    for (const type of ["debug_request", "constructor_request"])
      assert.equal((await client.ask(type, {}, "control")).ename, "NotImplementedError");
    const comm = client.send("comm_open", { comm_id: "c1" });
    await eventually(() => client.of(comm).some(({ header }) => header.msg_type === "comm_close"));
  });

  test("a message that is none closes its connection and nothing else", async () => {
    const id = await started();
    const index = (...numbers: bigint[]): Buffer => {
      const bytes = Buffer.alloc(8 * numbers.length);
      for (const [at, number] of numbers.entries()) bytes.writeBigUInt64LE(number, 8 * at);
      return bytes;
    };
    const wrong: [message: string | Buffer, isV1: boolean][] = [
      ["{", false],
      ["null", false],
      [JSON.stringify({ channel: "iopub", header: { msg_id: "1", msg_type: "status" } }), false],
      [Buffer.from([0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]), false],
      [index(0xffff_ffff_ffff_ffffn), true],
      [index(6n, 1n << 60n, 3n, 2n, 1n, 0n, 1n << 63n), true],
      ["{}", true],
    ];
    for (const [message, isV1] of wrong) {
      const client = await connected(id, isV1);
      client.socket.send(message);
      const [{ code }] = (await once(client.socket, "close")) as [CloseEvent];
      assert.equal(code, 1003, String(message));
    }
    await using client = await connected(id);
    const large = client.send("execute_request", { code: `len('${"x".repeat(1_000_000)}')` });
    assert.equal(contentOf(await client.all(large), "execute_result").data["text/plain"], "1000000");
    const lost = new WebSocket(`ws://${place}/api/kernels/none/channels`);
    await once(lost, "error");
  });
});
