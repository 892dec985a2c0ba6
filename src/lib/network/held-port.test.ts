import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { HeldPort, parkPort } from "./held-port.ts";

/** A server that answers each chunk with its own name. */
function echoing(name: string): { server: Server; sockets: Socket[] } {
  const sockets: Socket[] = [];
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.push(socket);
    socket.on("data", (chunk) => socket.write(`${name}:${chunk}`));
  });
  return { server, sockets };
}

async function said(socket: Socket): Promise<string> {
  const [chunk] = (await once(socket, "data")) as [Buffer];
  return chunk.toString();
}

test("connections wait on a held port, and the next server gets them with every byte", async (t) => {
  const first = echoing("first");
  const second = echoing("second");
  t.after(() => {
    for (const { server, sockets } of [first, second]) {
      server.close();
      for (const socket of sockets) socket.destroy();
    }
  });
  first.server.listen(0, "127.0.0.1");
  await once(first.server, "listening");
  const { port } = first.server.address() as AddressInfo;
  const kept = connect(port, "127.0.0.1");
  t.after(() => kept.destroy());
  kept.write("a");
  assert.equal(await said(kept), "first:a");

  const held = new HeldPort(first.server);
  for (const socket of first.sockets) {
    socket.removeAllListeners("data");
    held.hold(socket);
  }
  const closed = once(first.server, "close");
  first.server.close();
  await closed;
  const fresh = connect(port, "127.0.0.1");
  t.after(() => fresh.destroy());
  await once(fresh, "connect");
  fresh.write("b");
  kept.write("c");
  held.giveTo(second.server);
  assert.deepEqual(await Promise.all([said(kept), said(fresh)]), ["second:c", "second:b"]);
});

test("a parked port is taken, and accepts when it is given to a server or held", async (t) => {
  const parked = parkPort("127.0.0.1", 0);
  const { server, sockets } = echoing("later");
  t.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  const held = new HeldPort(parked);
  assert.throws(() => parkPort("127.0.0.1", parked.port), { code: "EADDRINUSE" });
  const early = connect(parked.port, "127.0.0.1");
  t.after(() => early.destroy());
  await once(early, "connect");
  early.write("a");
  held.giveTo(server);
  assert.equal(await said(early), "later:a");
});

test("a process that inherits a parked port parks it too, or accepts from it", async (t) => {
  const parked = parkPort("127.0.0.1", 0);
  t.after(() => parked.close());
  const program = `
    import { createServer } from "node:net";
    import { parkPort } from ${JSON.stringify(new URL("./held-port.ts", import.meta.url).href)};
    const server = createServer((socket) => socket.end("inherited", () => server.close()));
    const port = parkPort("127.0.0.1", 0, 3);
    server.on("listening", () => console.log(port.port));
    port.giveTo(server);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
    stdio: ["ignore", "pipe", "inherit", parked.fd],
  });
  t.after(() => child.kill("SIGKILL"));
  const [port] = (await once(child.stdout ?? assert.fail(), "data")) as [Buffer];
  assert.equal(Number(port), parked.port);
  assert.equal(await text(connect(parked.port, "127.0.0.1")), "inherited");
});
