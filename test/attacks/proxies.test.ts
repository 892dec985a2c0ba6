/** Clients that claim to come from elsewhere, through chains of real proxies: the audit log tells where they are. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { duplexPair } from "node:stream";
import { text } from "node:stream/consumers";
import { after, before, suite, test } from "node:test";
import { AUTH, answering, exchange, OK, rawUpstream, startTestGateway } from "../gateway/harness.ts";
import { startTestPlatform, type TestPlatform } from "../platform.ts";

/** Every party has an address of its own on this machine. */
const [CLIENT, OUTER, INNER] = ["127.0.0.10", "127.0.0.11", "127.0.0.12"];
const CLAIMS: Record<string, string>[] = [
  { "x-forwarded-for": "6.6.6.6" },
  { "x-forwarded-for": "6.6.6.6, 7.7.7.7" },
  { "x-forwarded-for": ", ,6.6.6.6,,<b>, " },
  { "x-real-ip": "6.6.6.6", forwarded: "for=6.6.6.6", "x-client-ip": "6.6.6.6", "cf-connecting-ip": "6.6.6.6" },
];

interface Asked {
  port: number;
  from: string;
  headers: Record<string, string>;
  chunked?: boolean;
}

let made = 0;

async function createPolicy({ port, from, headers, chunked }: Asked): Promise<number> {
  made += 1;
  const spec = { type: "maxToken", maxTokens: { total: 10 } };
  const body = JSON.stringify({ metadata: { name: `p-${made}` }, spec });
  const sent = request({
    ...{ host: "127.0.0.1", port, localAddress: from, method: "POST", path: "/v0/policies", agent: false },
    headers: {
      "content-type": "application/json",
      authorization: "Bearer test-admin-key-0123456789",
      ...(chunked ? { "transfer-encoding": "chunked" } : { "content-length": String(body.length) }),
      ...headers,
    },
  });
  sent.end(body);
  const [answer] = await once(sent, "response");
  answer.resume();
  await once(answer, "end");
  return answer.statusCode;
}

/** As proxies do: it adds the peer that it sees, and passes the rest on. */
async function startProxy(own: string, next: number, port?: (own: number) => void) {
  const server = createServer((incoming, response) => {
    const before = incoming.headers["x-forwarded-for"];
    const seen = incoming.socket.remoteAddress ?? "";
    const onward = request(
      {
        ...{ host: "127.0.0.1", port: next, localAddress: own, agent: false },
        ...{ method: incoming.method, path: incoming.url },
        headers: { ...incoming.headers, "x-forwarded-for": before === undefined ? seen : `${before}, ${seen}` },
      },
      (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(response);
      },
    );
    onward.on("error", () => response.destroy());
    incoming.pipe(onward);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  port?.((server.address() as AddressInfo).port);
  return server;
}

suite("addresses of clients behind two proxies", () => {
  let platform: TestPlatform;
  const closing: (() => void)[] = [];
  const ports = { edge: 0, inner: 0, outer: 0 };

  before(async () => {
    platform = await startTestPlatform({ config: { trust_proxy: "2" } });
    ports.edge = Number(new URL(platform.url).port);
    for (const [own, next, name] of [
      [INNER, "edge", "inner"],
      [OUTER, "inner", "outer"],
    ] as const) {
      const server = await startProxy(own ?? "", ports[next], (port) => {
        ports[name] = port;
      });
      closing.push(() => server.close().closeAllConnections());
    }
  });
  after(async () => {
    for (const close of closing) close();
    await platform.stop();
  });

  const told = async (asked: Asked): Promise<string> => {
    assert.equal(await createPolicy(asked), 200);
    const { body } = await platform.call("GET", "/audit?limit=1");
    return body.data[0].sourceAddress;
  };

  test("what a client claims in front of the proxies changes nothing, on both ways into the server", async () => {
    for (const chunked of [false, true])
      for (const headers of [{}, ...CLAIMS])
        assert.equal(
          await told({ port: ports.outer, from: CLIENT ?? "", headers, chunked }),
          CLIENT,
          JSON.stringify({ chunked, headers }),
        );
  });

  test("fields that no proxy of the operator writes are never believed, and a claim must be an address", async () => {
    const direct = (headers: Record<string, string>) => told({ port: ports.edge, from: CLIENT ?? "", headers });
    const [, , , others = {}] = CLAIMS;
    for (const headers of [{}, others, { "x-forwarded-for": "unknown, x" }])
      assert.equal(await direct(headers), CLIENT, JSON.stringify(headers));
  });
});

test("a workload that calls another is no proxy, and repeated fields are read as one list", async () => {
  await using up = await rawUpstream(answering(OK));
  await using gw = await startTestGateway({ upstream: up.port, trustProxy: true });
  const asked = (claims: string) => `GET /ws/agents/a HTTP/1.1\r\nHost: h\r\n${AUTH}${claims}Connection: close\r\n\r\n`;
  const claims = "X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-For: 7.7.7.7\r\nX-Forwarded-Proto: https\r\n";
  // Its door is a stream without an address.
  const [inside, workload] = duplexPair();
  gw.server.emit("connection", inside);
  workload.write(asked(claims));
  assert.match(await text(workload), /^HTTP\/1\.1 200 /);
  await exchange(gw.port, asked(claims));
  const heads = up.received.join("").split("\r\n\r\n");
  assert.match(heads[0] ?? "", /\r\nX-Forwarded-For: 127\.0\.0\.1\r\nX-Forwarded-Proto: http\r\n/);
  assert.match(
    heads[1] ?? "",
    /\r\nX-Forwarded-For: 6\.6\.6\.6, 7\.7\.7\.7, 127\.0\.0\.1\r\nX-Forwarded-Proto: https\r\n/,
  );
});
