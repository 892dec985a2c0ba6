import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import WebSocket from "ws";
import { closed, eventually, skip, startSandboxd, type TestDaemon } from "../../../test/sandboxd-harness.ts";

const SEEN_CHARS = 200_000;

interface Client {
  socket: WebSocket;
  seen(): string;
  /** Characters of output so far. */
  chars(): number;
  /** Of a client with `flow=ack`; 0 until the daemon has said it. */
  window(): number;
  errors: string[];
  type(data: string): void;
  send(message: unknown): void;
}

async function terminal(
  d: TestDaemon,
  query = "",
  onOutput?: (text: string, socket: WebSocket) => void,
): Promise<Client> {
  const socket = new WebSocket(`ws+unix:${d.config.apiSocket}:/terminal/ws?${query}`);
  let [seen, chars, window] = ["", 0, 0];
  const errors: string[] = [];
  socket.on("message", (data) => {
    const message = JSON.parse(String(data));
    if (message.type === "window") window = message.chars;
    else if (message.type === "error") errors.push(message.data);
    else {
      // Keep only the tail: comparing tens of megabytes again and again would dominate the flood test.
      seen = (seen + message.data).slice(-SEEN_CHARS);
      chars += message.data.length;
      onOutput?.(message.data, socket);
    }
  });
  await once(socket, "open");
  const send = (message: unknown): void => socket.send(typeof message === "string" ? message : JSON.stringify(message));
  const told = { seen: () => seen, chars: () => chars, window: () => window };
  return { socket, ...told, errors, send, type: (data) => send({ type: "input", data }) };
}

test("the terminal", { skip }, async (t) => {
  await using d = await startSandboxd();
  const clients = async () => (await d.ask("GET", "/activity", { socket: "control" })).json.terminalClients;

  await t.test("is a real terminal that can be resized", async () => {
    const one = await terminal(d, "cols=91&rows=33&sessionId=real&shell=/bin/sh");
    one.type("test -t 0 && echo is-a-$((1+1))-tty; stty size; echo $TERM\n");
    await eventually(() => /is-a-2-tty[\s\S]*33 91[\s\S]*xterm-256color/.test(one.seen()));
    one.send({ type: "resize", cols: 120, rows: 40 });
    one.type("stty size\n");
    await eventually(() => one.seen().includes("40 120"));
    one.type("cat\n");
    one.type("twice\n");
    // Echoed once by the terminal and once by cat: cat runs, so the signal will reach it.
    await eventually(() => /twice\r\ntwice/.test(one.seen()));
    one.type("\u0003");
    await eventually(() => /\^C[\s\S]*[#$] $/.test(one.seen()), "the prompt");
    one.type("echo after-$((40+2))\n");
    await eventually(() => one.seen().includes("after-42"));
    one.type("exit\n");
    await once(one.socket, "close");
  });

  await t.test("sessions are shared, survive their clients and are replayed after a reset", async () => {
    const one = await terminal(d, "sessionId=shared&shell=/bin/sh");
    const two = await terminal(d, "sessionId=shared&shell=/bin/sh");
    assert.equal(await clients(), 2);
    one.type("MARK=ed; echo re$MARK-$((6*7))\n");
    await eventually(() => one.seen().includes("reed-42") && two.seen().includes("reed-42"));
    one.socket.close();
    two.socket.close();
    await eventually(async () => (await clients()) === 0);
    const three = await terminal(d, "sessionId=shared");
    await eventually(() => three.seen().includes("reed-42"));
    assert.ok(three.seen().startsWith("\u001bc"));
    three.type("echo still-$MARK\n");
    await eventually(() => three.seen().includes("still-ed"));
    three.socket.terminate();
  });

  await t.test("sessions are apart", async () => {
    const one = await terminal(d, "sessionId=a&workingDir=/tmp&shell=/bin/sh");
    const two = await terminal(d, "sessionId=b&shell=/bin/sh");
    one.type("pwd\n");
    two.type("pwd\n");
    // Input typed before the shell has started appears after its first prompt.
    await eventually(() => /(\n|[$#] )\/tmp\r/.test(one.seen()) && two.seen().includes(d.workDir));
    assert.ok(!two.seen().includes("/tmp\r\n$"));
    one.socket.close();
    two.socket.close();
  });

  await t.test("a size of zero, or none, is the default", async () => {
    const one = await terminal(d, "cols=0&rows=0&sessionId=zero&shell=/bin/sh");
    one.type("echo first $(stty size)\n");
    await eventually(() => one.seen().includes("first 24 80"));
    one.send({ type: "resize", cols: 100, rows: 30 });
    one.type("echo second $(stty size)\n");
    await eventually(() => one.seen().includes("second 30 100"));
    one.send({ type: "resize", cols: 0, rows: 0 });
    one.type("echo third $(stty size)\n");
    await eventually(() => one.seen().includes("third 24 80"));
    one.socket.close();
  });

  await t.test("what cannot be started is said", async () => {
    for (const query of ["sessionId=x1&shell=/nowhere/sh", "sessionId=x2&workingDir=/nowhere"]) {
      const bad = await terminal(d, query);
      await eventually(() => bad.errors.length === 1);
      if (bad.socket.readyState !== WebSocket.CLOSED) await once(bad.socket, "close");
    }
    const odd = await terminal(d, "sessionId=odd&shell=/bin/sh");
    odd.send("not json");
    odd.send({ type: "dance" });
    odd.send("null");
    await eventually(() => odd.errors.length === 3);
    odd.send({ type: "resize", cols: -5, rows: 1e9 });
    odd.type("echo alive\n");
    await eventually(() => odd.seen().includes("alive"));
    odd.socket.close();
  });

  await t.test("a flood reaches a slow client as the screen it ends with", async () => {
    const slow = await terminal(d, "sessionId=flood&shell=/bin/sh");
    slow.socket.pause();
    slow.type("yes flood | head -c 8000000; echo THE-$((7*6))-END\n");
    const fast = await terminal(d, "sessionId=flood");
    await eventually(() => fast.seen().includes("THE-42-END"));
    slow.socket.resume();
    await eventually(() => slow.seen().includes("THE-42-END"));
    slow.socket.close();
    fast.socket.close();
  });

  await t.test("a program waits for a client that acknowledges, and nothing of its output is left out", async () => {
    let text = "";
    const client = await terminal(d, "sessionId=whole&shell=/bin/sh&flow=ack", (output, socket) => {
      text += output;
      socket.send(JSON.stringify({ type: "ack", chars: output.length }));
    });
    const last = 200_000;
    client.type(`seq 1 ${last}; echo THE-$((7*6))-END\n`);
    await eventually(() => client.seen().includes("THE-42-END"));
    assert.ok(client.window() > 0 && client.chars() > 4 * client.window());
    const numbers = text.slice(text.indexOf("END\r\n"), text.indexOf("THE-42-END")).match(/\d+/g) ?? [];
    assert.deepEqual([numbers.length, numbers.at(-1)], [last, String(last)]);
    client.socket.close();
  });

  await t.test("Ctrl-C ends a program while the client takes no output", async () => {
    const stuck = await terminal(d, "sessionId=stuck&shell=/bin/sh&flow=ack");
    stuck.type(`sh -c 'trap "touch ended" INT; yes flood'\n`);
    await eventually(() => stuck.window() > 0 && stuck.chars() >= stuck.window());
    stuck.type("\u0003");
    await eventually(() => existsSync(join(d.workDir, "ended")));
    assert.ok(stuck.chars() < 4 * stuck.window(), `${stuck.chars()} characters were sent ahead`);
    stuck.send({ type: "ack", chars: stuck.chars() });
    await eventually(() => /[#$] $/.test(stuck.seen()), "the prompt");
    stuck.socket.close();
  });

  await t.test("a program goes on without a client that takes nothing, which then gets the screen", async () => {
    const stuck = await terminal(d, "sessionId=gone&shell=/bin/sh&flow=ack");
    stuck.type("yes flood | head -c 4000000; echo THE-$((7*6))-END; touch over\n");
    await eventually(() => existsSync(join(d.workDir, "over")));
    assert.ok(stuck.chars() < 4 * stuck.window());
    assert.ok(!stuck.seen().includes("THE-42-END"));
    stuck.send({ type: "ack", chars: stuck.chars() });
    await eventually(() => stuck.seen().includes("THE-42-END"));
    stuck.socket.close();
  });

  await t.test("frames that break the rules end the connection", async () => {
    const frames: [string, Buffer][] = [
      ["unmasked", Buffer.from([0x81, 0x01, 0x41])],
      ["reserved bits", Buffer.from([0xf1, 0x80, 0, 0, 0, 0])],
      ["too long", Buffer.from([0x81, 0xff, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0])],
      ["continuation of nothing", Buffer.from([0x80, 0x80, 0, 0, 0, 0])],
    ];
    for (const [what, frame] of frames) {
      const socket = connect(d.config.apiSocket);
      const over = closed(socket);
      socket.write(
        `GET /terminal/ws?sessionId=raw HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
          `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${Buffer.alloc(16).toString("base64")}\r\n\r\n`,
      );
      await once(socket, "data");
      socket.write(frame);
      socket.resume();
      await over;
      assert.ok(socket.destroyed, what);
    }
    assert.equal((await d.ask("GET", "/health")).status, 200);
  });

  await t.test("without an upgrade, and elsewhere", async () => {
    assert.equal((await d.ask("GET", "/terminal/ws")).status, 426);
    for (const path of ["/terminal/ws", "/elsewhere"]) {
      const socket = connect(d.config.apiSocket);
      socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`);
      const [data] = await once(socket, "data");
      assert.match(String(data), path === "/elsewhere" ? /^HTTP\/1.1 404/ : /^HTTP\/1.1 400/);
      socket.destroy();
    }
  });

  await t.test("has a page", async () => {
    const { status, headers, text } = await d.ask("GET", "/terminal");
    assert.deepEqual([status, headers["content-type"]], [200, "text/html; charset=utf-8"]);
    const script = /<script>([\s\S]*)<\/script>/.exec(text)?.[1] ?? "";
    assert.doesNotThrow(() => new Function(script));
  });
});

test("the terminal can be switched off", { skip }, async () => {
  await using d = await startSandboxd({ config: { env: { DISABLE_TERMINAL: "true" } } });
  assert.equal((await d.ask("GET", "/terminal")).status, 404);
  const socket = new WebSocket(`ws+unix:${d.config.apiSocket}:/terminal/ws`);
  const [error] = await once(socket, "error");
  assert.match(String(error), /404/);
});
