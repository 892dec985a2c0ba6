import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer as createHttpServer, type IncomingMessage } from "node:http";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { freePort } from "../../../test/free-port.ts";
import { closed, eventually, skip, startSandboxd, type TestDaemon } from "../../../test/sandboxd-harness.ts";

const readAll = async (socket: Socket): Promise<Buffer> => {
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
};

async function listening(
  options: { host?: string; path?: string; allowHalfOpen?: boolean },
  serve: (socket: Socket) => void,
) {
  const server = createServer({ allowHalfOpen: options.allowHalfOpen ?? true }, (socket) => {
    socket.on("error", () => socket.destroy());
    serve(socket);
  });
  server.listen(options.path ? { path: options.path } : { host: options.host ?? "127.0.0.1", port: 0 });
  await once(server, "listening");
  const address = server.address() as AddressInfo | string;
  return {
    port: typeof address === "string" ? 0 : address.port,
    [Symbol.asyncDispose]: async () => {
      server.close();
      await once(server, "close");
    },
  };
}

/** A machine may be without IPv6. */
const LOOPBACKS = ["127.0.0.1", "::1"].filter((address) =>
  Object.values(networkInterfaces()).some((all) => all?.some((each) => each.address === address)),
);

const activity = async (d: TestDaemon) => (await d.ask("GET", "/activity", { socket: "control" })).json;

test("the port door", { skip }, async (t) => {
  await using d = await startSandboxd();

  await t.test("carries bytes both ways and closes each direction on its own", async () => {
    for (const host of LOOPBACKS) {
      await using echo = await listening({ host }, async (socket) => {
        const received = await readAll(socket);
        socket.end(Buffer.concat([Buffer.from("got "), received]));
      });
      const { line, socket } = await d.portDoor(echo.port);
      assert.equal(line, "OK\n");
      assert.equal((await activity(d)).portConnections, 1);
      socket.end("hello");
      assert.equal((await readAll(socket)).toString(), "got hello");
      await eventually(async () => (await activity(d)).portConnections === 0);
    }
  });

  await t.test("takes payload sent together with the line", async () => {
    await using echo = await listening({}, (socket) => socket.pipe(socket));
    const socket = connect(d.config.portSocket);
    socket.end(`PORT ${echo.port}\nearly bird`);
    assert.equal((await readAll(socket)).toString(), "OK\nearly bird");
  });

  await t.test("moves 50 MB without holding them", async () => {
    const size = 50 * 1024 * 1024;
    await using source = await listening({}, (socket) => socket.end(Buffer.alloc(size, 7)));
    const { socket } = await d.portDoor(source.port);
    const received = await readAll(socket);
    assert.equal(received.length, size);
  });

  await t.test("says why not", async () => {
    const { line } = await d.portDoor(await freePort());
    assert.match(line, /^ERR nothing listens on port \d+: ECONNREFUSED\n$/);
    for (const preface of ["PORT 0\n", "PORT 70000\n", "PORT x\n", "GET / HTTP/1.1\r\n\n"]) {
      const socket = connect(d.config.portSocket);
      socket.end(preface);
      assert.match((await readAll(socket)).toString(), /^ERR expected PORT/);
    }
    const chatter = connect(d.config.portSocket);
    const over = closed(chatter);
    chatter.on("data", (bytes) => assert.fail(`it was told ${bytes}`));
    chatter.write("x".repeat(10_000));
    await over;
  });

  await t.test("a server that breaks off breaks the client off", async () => {
    await using rude = await listening({}, (socket) => socket.once("data", () => socket.resetAndDestroy()));
    const { socket } = await d.portDoor(rude.port);
    const over = closed(socket);
    socket.write("x");
    socket.resume();
    await over;
    await eventually(async () => (await activity(d)).portConnections === 0);
  });
});

test("platform doors", { skip }, async (t) => {
  const door = await freePort();
  const byArgument = await freePort();
  await using d = await startSandboxd({
    config: { doors: [{ listen: `127.0.0.1:${door}`, socket: "/nowhere/platform.sock" }] },
    args: (folder) => ["--door-listen", `127.0.0.1:${byArgument}`, "--door-socket", join(folder, "platform.sock")],
  });

  await t.test("lead to the platform's socket, whatever is said", async () => {
    await using platform = await listening({ path: join(d.folder, "platform.sock") }, (socket) => socket.pipe(socket));
    assert.ok(platform);
    const socket = connect(byArgument, "127.0.0.1");
    const bytes = Buffer.alloc(3 * 1024 * 1024, "berth");
    socket.end(bytes);
    assert.ok((await readAll(socket)).equals(bytes));
    await eventually(async () => (await activity(d)).doorConnections === 0);
  });

  await t.test("close when the platform is away", async () => {
    const socket = connect(door, "127.0.0.1");
    socket.resume();
    await closed(socket);
  });
});

test("ports of a process", { skip }, async (t) => {
  await using d = await startSandboxd();
  const port = await freePort();
  const second = await freePort();
  const server = `${process.execPath} -e "const n=require('node:net');n.createServer().listen(${port},'127.0.0.1');setTimeout(()=>n.createServer().listen(${second}),700)"`;

  await t.test("belong to it and to what it has started", async () => {
    const { json } = await d.ask("POST", "/process", {
      body: { command: `${server} & wait`, waitForPorts: [port], timeout: 60 },
    });
    const { json: ports } = await d.ask("GET", `/network/process/${json.pid}/ports`);
    assert.equal(ports.pid, Number(json.pid));
    const found = ports.ports.find((one: { localPort: number }) => one.localPort === port);
    assert.notEqual(found.pid, Number(json.pid));
    assert.deepEqual(
      [found.protocol, found.localAddr, found.remoteAddr, found.remotePort, found.state, typeof found.processName],
      ["tcp", "127.0.0.1", "0.0.0.0", 0, "LISTEN", "string"],
    );
    await d.ask("DELETE", `/process/${json.pid}/kill`);
  });

  await t.test("new ones are told to a callback, once", async () => {
    const told: { pid: number; port: number }[] = [];
    const receiver = createHttpServer(async (req: IncomingMessage, res) => {
      let body = "";
      for await (const chunk of req) body += chunk;
      told.push(JSON.parse(body));
      res.end();
    }).listen(0, "127.0.0.1");
    await once(receiver, "listening");
    const { json } = await d.ask("POST", "/process", { body: { command: server, waitForPorts: [port], timeout: 60 } });
    const callback = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
    const started = await d.ask("POST", `/network/process/${json.pid}/monitor`, { body: { callback } });
    assert.deepEqual([started.status, typeof started.json.message], [200, "string"]);
    await eventually(() => told.length === 2);
    const inOrder = (ports: number[]): number[] => ports.toSorted((a, b) => a - b);
    assert.deepEqual(inOrder(told.map((one) => one.port)), inOrder([port, second]));
    for (const { pid } of told) assert.equal(pid, Number(json.pid));
    assert.equal((await d.ask("DELETE", `/network/process/${json.pid}/monitor`)).status, 200);
    assert.equal((await d.ask("DELETE", `/network/process/${json.pid}/monitor`)).status, 422);
    receiver.close();
  });

  await t.test("refusals", async () => {
    assert.equal((await d.ask("GET", "/network/process/abc/ports")).status, 400);
    assert.equal((await d.ask("GET", "/network/process/999999999/ports")).status, 422);
    const { json } = await d.ask("POST", "/process", { body: { command: "sleep 50" } });
    for (const callback of [undefined, "", "ftp://x/", "not a url"]) {
      assert.equal((await d.ask("POST", `/network/process/${json.pid}/monitor`, { body: { callback } })).status, 400);
    }
  });
});

test("the tunnel says that it cannot be", { skip }, async () => {
  await using d = await startSandboxd();
  const put = (config: unknown) => d.ask("PUT", "/network/tunnel/config", { body: { config } });
  assert.equal((await put(undefined)).status, 400);
  assert.match((await put("!")).json.error, /base64/);
  const key = Buffer.alloc(32, 7).toString("base64");
  const full = { local_ip: "10.0.0.2/32", peer_endpoint: "h:1", peer_public_key: key, private_key: key };
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64");
  assert.match((await put(encode({ ...full, private_key: undefined }))).json.error, /private_key/);
  const refused = await put(encode(full));
  assert.deepEqual([refused.status, /WireGuard/.test(refused.json.error)], [500, true]);
  const wrong = {
    local_ip: "10.0.0.300",
    peer_endpoint: "no-port",
    peer_public_key: "k",
    private_key: Buffer.alloc(31).toString("base64"),
    mtu: 0,
    listen_port: 65_536,
    interface_name: "a/b",
    allowed_ips: ["10.0.0.0/33"],
    persistent_keepalive: -1,
    route_all: "yes",
  };
  for (const [name, value] of Object.entries(wrong)) {
    const { status, json } = await put(encode({ ...full, [name]: value }));
    assert.deepEqual([status, json.error.includes(`"${name}"`)], [422, true], name);
  }
  const all = {
    mtu: 1420,
    listen_port: 51820,
    interface_name: "wg0",
    allowed_ips: ["0.0.0.0/0", "::/0"],
    route_all: false,
  };
  assert.equal((await put(encode({ ...full, ...all }))).status, 500);
  assert.equal((await d.ask("DELETE", "/network/tunnel")).status, 400);
  assert.equal((await d.ask("GET", `/port/8888/contexts`)).status, 404);
});
