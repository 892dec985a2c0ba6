import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer as createHttpServer, type IncomingMessage } from "node:http";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { type EgressOptions, startEgressProxy } from "./egress-proxy.ts";

/** A proxy on a loopback port, with every connection owned by "box". */
async function place(t: TestContext, options: EgressOptions = {}): Promise<(text: string) => Promise<string>> {
  const proxy = startEgressProxy(options);
  const door = createServer({ allowHalfOpen: true }, (socket) => proxy.serve("box", socket));
  const port = await listen(t, door);
  t.after(() => proxy.stop());
  return async (text) => {
    const socket = connect(port, "127.0.0.1");
    if (text.startsWith("CONNECT")) socket.end(text);
    else socket.write(text); // a client that shuts its side is taken for gone, as by every HTTP server
    let answer = "";
    for await (const chunk of socket) answer += chunk;
    return answer;
  };
}

async function listen(t: TestContext, server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  return (server.address() as AddressInfo).port;
}

const here: EgressOptions = {
  allowed: (_, __, address) => address === "127.0.0.1",
  resolve: async () => ["127.0.0.1"],
};

test("a tunnel carries both directions and its bytes are counted", async (t) => {
  const upstream = await listen(
    t,
    createServer({ allowHalfOpen: true }, (socket: Socket) => void socket.pipe(socket)),
  );
  const counted = Promise.withResolvers<[string, number, number]>();
  const ask = await place(t, { ...here, onBytes: (...row) => counted.resolve(row) });
  const answer = await ask(`CONNECT example.com:${upstream} HTTP/1.1\r\nHost: x\r\n\r\nhello`);
  assert.equal(answer, "HTTP/1.1 200 Connection Established\r\n\r\nhello");
  assert.deepEqual(await counted.promise, ["box", 5, 5]);
});

test("a plain request is passed on byte for byte, without what belongs to the connection", async (t) => {
  const seen: IncomingMessage[] = [];
  const upstream = await listen(
    t,
    createHttpServer((incoming, response) => {
      seen.push(incoming);
      response.setHeader("x-answer", "yes");
      incoming.pipe(response);
    }),
  );
  const ask = await place(t, here);
  const head = `POST http://example.com:${upstream}//a/../%2F?q=1 HTTP/1.1\r\nHost: elsewhere\r\nProxy-Connection: keep-alive`;
  const answer = await ask(`${head}\r\nX-Mine: 1\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody`);
  assert.match(answer, /^HTTP\/1.1 200 OK\r\n/);
  assert.match(answer, /x-answer: yes/);
  assert.match(answer, /body/);
  const [request] = seen;
  assert.equal(request?.url, "//a/../%2F?q=1");
  assert.equal(request?.headers.host, `example.com:${upstream}`);
  assert.equal(request?.headers["x-mine"], "1");
  assert.equal(request?.headers["proxy-connection"], undefined);
});

test("a name that resolves to a private address is refused, also when only one of its addresses is", async (t) => {
  for (const resolved of [["127.0.0.1"], ["93.184.216.34", "10.0.0.1"], ["::ffff:169.254.169.254"]]) {
    const ask = await place(t, { resolve: async () => resolved });
    for (const request of [
      "CONNECT rebind.test:443 HTTP/1.1\r\nHost: x",
      "GET http://rebind.test/ HTTP/1.1\r\nHost: x",
    ]) {
      const answer = await ask(`${request}\r\n\r\n`);
      assert.match(answer, /^HTTP\/1.1 403 Forbidden/);
      assert.match(answer, /proxy-error: destination_forbidden/i);
    }
  }
});

test("an address is resolved once: the second answer of a name server is never asked for", async (t) => {
  let asked = 0;
  const upstream = await listen(
    t,
    createServer((socket) => socket.end("judged")),
  );
  const resolve = async (): Promise<string[]> => (asked++ === 0 ? ["127.0.0.1"] : ["10.0.0.1"]);
  const ask = await place(t, { ...here, resolve });
  assert.match(await ask(`CONNECT flip.test:${upstream} HTTP/1.1\r\nHost: x\r\n\r\n`), /judged$/);
  assert.equal(asked, 1);
});

const refusals: [string, RegExp][] = [
  ["CONNECT 169.254.169.254:80 HTTP/1.1", /403.*destination_forbidden/s],
  ["CONNECT [::1]:80 HTTP/1.1", /403.*destination_forbidden/s],
  ["CONNECT 127.1:80 HTTP/1.1", /40[03]/],
  ["GET http://2130706433/ HTTP/1.1", /403/],
  ["GET http://0x7f.1/ HTTP/1.1", /403/],
  ["CONNECT example.com:25 HTTP/1.1", /403.*port_forbidden/s],
  ["CONNECT example.com HTTP/1.1", /400/],
  ["CONNECT user@example.com:80 HTTP/1.1", /400/],
  ["CONNECT example.com:99999 HTTP/1.1", /400/],
  ["GET /local HTTP/1.1", /400/],
  ["GET https://example.com/ HTTP/1.1", /400/],
  ["NONSENSE", /400/],
];
for (const [line, expected] of refusals) {
  test(`refused: ${line}`, async (t) => {
    const ask = await place(t, { resolve: async (host) => (host === "127.1" ? ["127.0.0.1"] : ["93.184.216.34"]) });
    assert.match(await ask(`${line}\r\nHost: x\r\n\r\n`), expected);
  });
}

test("a name that does not resolve and a host that does not answer are told apart", async (t) => {
  const ask = await place(t, {
    allowed: () => true,
    resolve: async (host) => {
      if (host === "gone.test") throw new Error("ENOTFOUND");
      return ["127.0.0.1"];
    },
  });
  assert.match(await ask("CONNECT gone.test:80 HTTP/1.1\r\nHost: x\r\n\r\n"), /502.*name_not_resolved/s);
  assert.match(await ask("CONNECT shut.test:1 HTTP/1.1\r\nHost: x\r\n\r\n"), /502.*connection_failed/s);
});
