/** One workload uses up nothing of the egress proxy that other workloads need. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { describe, type TestContext, test } from "node:test";
import { compileNetwork } from "../../src/kinds/workload/network.ts";
import { type EgressOptions, type EgressProxy, startEgressProxy } from "../../src/node/egress/egress-proxy.ts";
import { listen } from "../egress-place.ts";

interface Place {
  proxy: EgressProxy;
  open(uid: string): Promise<Socket>;
}

async function place(t: TestContext, options: EgressOptions): Promise<Place> {
  const proxy = startEgressProxy({ allowed: () => true, ...options });
  t.after(() => proxy.stop());
  const owners: string[] = [];
  const port = await listen(
    t,
    createServer({ allowHalfOpen: true }, (socket) => proxy.serve(owners.shift() ?? "", socket)),
  );
  return {
    proxy,
    async open(uid) {
      owners.push(uid);
      const socket = connect(port, "127.0.0.1");
      socket.on("error", () => {}); // the proxy may cut the connection
      t.after(() => socket.destroy());
      await once(socket, "connect");
      return socket;
    },
  };
}

async function answerOf(socket: Socket): Promise<string> {
  const [data] = (await once(socket, "data")) as [Buffer];
  return data.toString();
}

/** Also when the connection was reset. */
const closeOf = (socket: Socket): Promise<void> =>
  new Promise((resolve) => void socket.resume().once("close", resolve));

test("names that are slow to resolve hold up the look-ups of their own workload only", async (t) => {
  let slow = 0;
  const { open } = await place(t, {
    resolve: async (host) => {
      if (!host.startsWith("slow")) return [];
      slow += 1;
      return new Promise(() => {});
    },
  });
  const attackers: Socket[] = [];
  for (let index = 0; index < 300; index++) {
    const socket = await open("attacker");
    socket.write(`CONNECT slow${index}.test:443 HTTP/1.1\r\nHost: x\r\n\r\n`);
    attackers.push(socket);
  }
  assert.match(await Promise.any(attackers.map(answerOf)), /^HTTP\/1\.1 429 .*\r\nProxy-Error: too_many_lookups\r\n/);
  assert.equal(slow, 16);
  const neighbour = await open("neighbour");
  neighbour.write("CONNECT quick.test:443 HTTP/1.1\r\nHost: x\r\n\r\n");
  assert.match(await answerOf(neighbour), /^HTTP\/1\.1 502 .*\r\nProxy-Error: name_not_resolved\r\n/);
});

describe("a head that never ends is given up", () => {
  test("at the door of the proxy, also after a first request", async (t) => {
    const { open } = await place(t, { headersWaitMs: 100 });
    const [first, later] = [await open("box"), await open("box")];
    first.write("GET http://example.test/ HTTP/1.1\r\nX-Slow: ");
    later.write("GET https://refused.test/ HTTP/1.1\r\nHost: x\r\n\r\nGET http://example.test/ HTTP/1.1\r\nX-Slow: ");
    await Promise.all([first, later].map(closeOf));
  });

  test("inside a tunnel whose requests are read", async (t) => {
    const upstream = await listen(
      t,
      createServer((socket) => socket.on("error", () => {})),
    );
    const compiled = compileNetwork({ proxy: { allowedDomains: ["a.test"] } });
    const rules = { of: async () => compiled, onChange: () => () => {} };
    const { open } = await place(t, { headersWaitMs: 100, resolve: async () => ["127.0.0.1"], rules });
    const socket = await open("box");
    socket.write(`CONNECT a.test:${upstream} HTTP/1.1\r\nHost: x\r\n\r\n`);
    assert.match(await answerOf(socket), /^HTTP\/1\.1 200 /);
    socket.write("GET / HTTP/1.1\r\nX-Slow: ");
    assert.match(await answerOf(socket), /^HTTP\/1\.1 408 .*\r\nProxy-Error: head_too_slow\r\n/);
    await closeOf(socket);
  });

  test("where connections are led to the proxy, however slowly their bytes come", async (t) => {
    const { proxy } = await place(t, { headersWaitMs: 100 });
    const port = await listen(
      t,
      createServer({ allowHalfOpen: true }, (socket) => proxy.serveTransparent("box", 443, socket)),
    );
    const socket = connect(port, "127.0.0.1");
    socket.write(Buffer.from([22, 3, 1, 0x30, 0, 1, 0, 0x2f, 0xfc])); // of a first message of 12 KB
    const drip = setInterval(() => socket.write("\0"), 20);
    t.after(() => {
      clearInterval(drip);
      socket.destroy();
    });
    socket.on("error", () => {}); // the proxy cuts the connection
    await closeOf(socket);
  });
});

test("a proxy that stops closes the connections of its clients", async (t) => {
  const { proxy, open } = await place(t, {});
  const socket = await open("box");
  socket.write("GET https://refused.test/ HTTP/1.1\r\nHost: x\r\n");
  socket.write("\r\n");
  await answerOf(socket);
  const idle = await open("box");
  idle.write("GET http://example.test/");
  await proxy.stop();
  await closeOf(idle);
});
