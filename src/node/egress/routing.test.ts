/** Secrets that the proxy fills in: real TLS on both sides, servers on loopback. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type IncomingMessage, type RequestListener, request } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { createServer, type Server } from "node:https";
import { createServer as createTcpServer, type Socket } from "node:net";
import { describe, type TestContext, test } from "node:test";
import { type TLSSocket, connect as tlsConnect } from "node:tls";
import { listen, type RuledPlace, ruledPlace } from "../../../test/egress-place.ts";
import { testAuthority } from "../../../test/tls-credential.ts";
import { compileNetwork, type NetworkSpec } from "../../kinds/workload/network.ts";
import type { EgressOptions } from "./egress-proxy.ts";

/** Of the world, and of the workspace. */
const world = testAuthority("authority of the world");
const workspace = testAuthority("authority of a workspace");
const SECRET = 'sk-hush-"quoted"-42';

const routing = [
  {
    destinations: ["api.test", "GET:methods.test/v1/*"],
    headers: { Authorization: "Bearer {{SECRET:key}}", "X-Nonce": "{{FUNC:nonce}}" },
    body: { tenant: "{{SECRET:key}}", model: "default" },
    secrets: { key: SECRET },
  },
  { destinations: ["echo.test"], headers: { Authorization: "{{SECRET:key}}" }, secrets: { key: SECRET }, redact: true },
];
const NETWORK: NetworkSpec = { proxy: { routing, bypass: ["bypass.test"] } };

interface Seen {
  method: string | undefined;
  url: string | undefined;
  headers: IncomingMessage["headers"];
  body: string;
}

interface RoutedPlace extends Omit<RuledPlace, "ask"> {
  seen: Seen[];
  port: number;
  server: Server;
  /** TLS through the proxy, with the authorities that a workload trusts. */
  secure(host: string, options?: { alpn?: string[]; servername?: string }): Promise<TLSSocket>;
  ask(host: string, options?: Asked): Promise<{ status: number; text: string; headers: IncomingMessage["headers"] }>;
}

interface Asked {
  method?: string;
  path?: string;
  headers?: Record<string, string>;
  body?: string;
}

async function routedPlace(
  t: TestContext,
  answer?: RequestListener,
  network = NETWORK,
  options: EgressOptions = {},
): Promise<RoutedPlace> {
  const seen: Seen[] = [];
  const { certificate: cert, key } = world.credentialOf("api.test");
  const server = createServer({ cert, key }, async (incoming, response) => {
    let body = "";
    for await (const chunk of incoming) body += chunk;
    seen.push({ method: incoming.method, url: incoming.url, headers: incoming.headers, body });
    if (answer) answer(incoming, response);
    else response.end(`seen by ${incoming.headers.host}`);
  });
  for (const host of ["echo.test", "methods.test", "plain.test", "bypass.test"]) {
    const credential = world.credentialOf(host);
    server.addContext(host, { cert: credential.certificate, key: credential.key });
  }
  server.on("tlsClientError", () => {});
  const port = await listen(t, server);
  t.after(() => server.closeAllConnections());
  const place = await ruledPlace(t, network, {
    credentialOf: async (_, host) => workspace.credentialOf(host),
    authorities: world.certificate,
    ...options,
  });
  const secure: RoutedPlace["secure"] = async (host, { alpn = ["http/1.1"], servername = host } = {}) => {
    const { head, socket } = await place.tunnel(`${host}:${port}`);
    assert.match(head, /^HTTP\/1\.1 200 /);
    const ca = [world.certificate, workspace.certificate];
    const stream = tlsConnect({ socket, servername, ca, ALPNProtocols: alpn });
    t.after(() => stream.destroy());
    await once(stream, "secureConnect");
    return stream;
  };
  return {
    ...place,
    ...{ seen, port, server, secure },
    async ask(host, { method = "GET", path = "/", headers = {}, body } = {}) {
      const stream = await secure(host);
      const sent = request({
        createConnection: () => stream,
        ...{ method, path },
        headers: { host: `${host}:${port}`, ...headers },
      });
      sent.end(body);
      const [response] = (await once(sent, "response")) as [IncomingMessage];
      let text = "";
      for await (const chunk of response) text += chunk;
      return { status: response.statusCode ?? 0, text, headers: response.headers };
    },
  };
}

const issuerOf = (stream: TLSSocket): string => String(stream.getPeerCertificate().issuer.CN);

describe("a routed host", () => {
  test("gets the header that the platform fills in; the certificate is the workspace's", async (t) => {
    const { ask, seen, secure, port } = await routedPlace(t);
    assert.equal(issuerOf(await secure("api.test")), "authority of a workspace");
    const { status, text } = await ask("api.test", { path: "/a?b=%2F" });
    assert.deepEqual([status, text], [200, `seen by api.test:${port}`]);
    assert.equal(seen[0]?.headers.authorization, `Bearer ${SECRET}`);
    assert.match(String(seen[0]?.headers["x-nonce"]), /^[0-9a-f]{32}$/);
    assert.equal(seen[0]?.url, "/a?b=%2F");
  });

  test("the caller's header wins, and placeholders of the caller are filled in", async (t) => {
    const { ask, seen } = await routedPlace(t);
    const headers = { authorization: "mine", "x-key": "{{SECRET:key}}/{{SECRET:other}}" };
    await ask("api.test", { headers });
    assert.equal(seen[0]?.headers.authorization, "mine");
    assert.equal(seen[0]?.headers["x-key"], `${SECRET}/{{SECRET:other}}`);
  });

  test("JSON bodies get the members that the caller left out, byte for byte otherwise", async (t) => {
    const { ask, seen } = await routedPlace(t);
    const headers = { "content-type": "application/json" };
    const body = '{ "model": "mine", "big": 12345678901234567890, "note": "{{SECRET:key}} ü" }';
    await ask("api.test", { method: "POST", headers, body });
    await ask("api.test", { method: "POST", headers, body: "{}" });
    await ask("api.test", { method: "POST", headers, body: "[1]" });
    const large = JSON.stringify({ text: "x".repeat(2 ** 20) });
    await ask("api.test", { method: "POST", headers, body: large });
    const [first, second, third, fourth] = seen.map((each) => each.body);
    assert.match(first ?? "", /"big": 12345678901234567890/);
    assert.deepEqual(
      { ...JSON.parse(first ?? ""), big: 0 },
      { tenant: SECRET, model: "mine", big: 0, note: `${SECRET} ü` },
    );
    assert.deepEqual(JSON.parse(second ?? ""), { tenant: SECRET, model: "default" });
    assert.equal(third, "[1]");
    assert.equal(fourth, large);
  });

  test("methods and paths decide", async (t) => {
    const { ask, seen } = await routedPlace(t);
    for (const [method, path] of [
      ["GET", "/v1/x"],
      ["POST", "/v1/x"],
      ["GET", "/v2"],
    ] as const)
      await ask("methods.test", { method, path });
    assert.deepEqual(
      seen.map(({ headers }) => headers.authorization !== undefined),
      [true, false, false],
    );
  });

  test("HTTP/2 works, several requests at a time", async (t) => {
    const { secure, seen, port } = await routedPlace(t);
    const stream = await secure("api.test", { alpn: ["h2"] });
    assert.equal(stream.alpnProtocol, "h2");
    const client = connectHttp2(`https://api.test:${port}`, { createConnection: () => stream });
    t.after(() => client.destroy());
    const answers = await Promise.all(
      ["/one", "/two"].map(async (path) => {
        const sent = client.request({ ":path": path, ":method": "POST", "content-type": "application/json" });
        sent.end('{"a":1}');
        let text = "";
        for await (const chunk of sent) text += chunk;
        return text;
      }),
    );
    assert.deepEqual(answers, Array(2).fill(`seen by api.test:${port}`));
    assert.deepEqual(seen.map(({ url }) => url).sort(), ["/one", "/two"]);
    assert.ok(
      seen.every(({ headers, body }) => headers.authorization === `Bearer ${SECRET}` && body.includes("tenant")),
    );
  });

  test("an answer that comes in pieces is passed on as it comes", async (t) => {
    const gate = Promise.withResolvers<void>();
    const { secure, port } = await routedPlace(t, async (_, response) => {
      response.write("data: one\n\n");
      await gate.promise;
      response.end("data: two\n\n");
    });
    for (const host of ["api.test", "echo.test"]) {
      const stream = await secure(host);
      const sent = request({ createConnection: () => stream, path: "/", headers: { host: `${host}:${port}` } }).end();
      const [response] = (await once(sent, "response")) as [IncomingMessage];
      const [first] = (await once(response, "data")) as [Buffer];
      assert.equal(first.toString(), "data: one\n\n");
      gate.resolve();
      for await (const _ of response);
    }
  });

  test("a WebSocket gets the header, and its bytes pass both ways", async (t) => {
    const { secure, server, port } = await routedPlace(t);
    const asked = Promise.withResolvers<string | undefined>();
    server.on("upgrade", (incoming, socket) => {
      asked.resolve(incoming.headers.authorization);
      socket.write("HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n");
      socket.pipe(socket);
    });
    const stream = await secure("api.test");
    const headers = { host: `api.test:${port}`, connection: "Upgrade", upgrade: "websocket" };
    const sent = request({ createConnection: () => stream, path: "/", headers }).end();
    const [, socket] = (await once(sent, "upgrade")) as [IncomingMessage, Socket];
    socket.write("ping");
    const [echo] = (await once(socket, "data")) as [Buffer];
    assert.deepEqual([echo.toString(), await asked.promise], ["ping", `Bearer ${SECRET}`]);
    socket.destroy();
  });

  test("a server that echoes the secret is redacted where the route says so, also across chunks", async (t) => {
    const { ask } = await routedPlace(t, (incoming, response) => {
      const secret = String(incoming.headers.authorization);
      response.setHeader("x-echo", secret);
      response.write(`you sent ${secret.slice(0, 5)}`);
      setImmediate(() => response.end(`${secret.slice(5)} and ${JSON.stringify({ secret })}.`));
    });
    const { text, headers } = await ask("echo.test", { headers: { "accept-encoding": "gzip" } });
    assert.equal(text, 'you sent [redacted] and {"secret":"[redacted]"}.');
    assert.equal(headers["x-echo"], "[redacted]");
  });
});

describe("nothing else gets a secret", () => {
  test("hosts without a route and bypassed hosts are tunnelled untouched", async (t) => {
    const everywhere = { proxy: { routing: [{ ...routing[0], destinations: ["*"] }], bypass: ["bypass.test"] } };
    for (const [host, network] of [
      ["plain.test", NETWORK],
      ["bypass.test", everywhere],
    ] as const) {
      const { secure, ask, seen } = await routedPlace(t, undefined, network);
      assert.equal(issuerOf(await secure(host)), "authority of the world");
      await ask(host, { headers: { "x-key": "{{SECRET:key}}" } });
      assert.deepEqual([seen[0]?.headers.authorization, seen[0]?.headers["x-key"]], [undefined, "{{SECRET:key}}"]);
    }
  });

  test("a request for another host on the same connection is refused, whatever names it", async (t) => {
    const { ask, seen, tunnel, port, refused } = await routedPlace(t);
    const { status, headers } = await ask("api.test", { headers: { host: "plain.test" } });
    assert.deepEqual([status, headers["proxy-error"]], [403, "firewall_blocked"]);
    const { socket } = await tunnel(`api.test:${port}`);
    const stream = tlsConnect({ socket, servername: "plain.test", ca: workspace.certificate });
    await assert.rejects(once(stream, "secureConnect"));
    assert.equal(seen.length, 0);
    assert.equal(refused.length, 2);
  });

  test("a server whose certificate is not accepted gets nothing", async (t) => {
    const { ask, seen } = await routedPlace(t, undefined, {
      proxy: { routing: [{ ...routing[0], destinations: ["forged.test"] }] },
    });
    const { status, headers } = await ask("forged.test");
    assert.deepEqual([status, headers["proxy-error"], seen.length], [502, "upstream_tls_failed", 0]);
  });

  test("plain HTTP gets no secret", async (t) => {
    const { tunnel, port, seen } = await routedPlace(t);
    const { socket } = await tunnel(`api.test:${port}`);
    socket.resume();
    // The server speaks TLS only; the request reaches it without a secret and is refused there.
    socket.write(`GET / HTTP/1.1\r\nHost: api.test:${port}\r\nX-Key: {{SECRET:key}}\r\n\r\n`);
    const [answer] = (await once(socket, "data")) as [Buffer];
    assert.match(answer.toString(), /^HTTP\/1\.1 (?:502|400)/);
    assert.equal(seen.length, 0);
  });
});

test("bodies that wait to be whole are bounded for a workload, and a request that ends gives its part back", async (t) => {
  const { ask, secure, seen, port } = await routedPlace(t);
  const stream = await secure("api.test", { alpn: ["h2"] });
  const client = connectHttp2(`https://api.test:${port}`, { createConnection: () => stream });
  t.after(() => client.destroy());
  const headers = { "content-type": "application/json" };
  const body = " ".repeat(2 ** 20);
  const held = Array.from({ length: 20 }, () => client.request({ ":path": "/", ":method": "POST", ...headers }));
  for (const sent of held) sent.on("error", () => {}).write(body); // the test breaks the request off
  const refused = await Promise.any(held.map(async (sent) => (await once(sent, "response"))[0]));
  assert.deepEqual([refused[":status"], refused["proxy-error"]], [429, "too_many_bodies"]);
  client.destroy();
  // The proxy may hear of the end after the next request.
  while ((await ask("api.test", { method: "POST", headers, body })).status === 429);
  assert.equal(seen.length, 1);
});

test("a body that is never finished is given up, and so is one that the host does not take", async (t) => {
  const { secure, tunnel, port } = await routedPlace(t, undefined, NETWORK, { bodyWaitMs: 100 });
  const silent = await listen(
    t,
    createTcpServer((socket) => {
      t.after(() => socket.destroy());
      socket.on("error", () => {}).resume();
    }),
  );
  const head = "POST / HTTP/1.1\r\nContent-Type: application/json\r\n";
  const slow = await secure("api.test");
  slow.write(`${head}Host: api.test:${port}\r\nContent-Length: 100\r\n\r\n{`);
  const [answer] = (await once(slow, "data")) as [Buffer];
  assert.match(answer.toString(), /^HTTP\/1\.1 408 .*\r\nproxy-error: body_too_slow\r\n/);
  await once(slow.resume(), "close");

  const { head: connected, socket } = await tunnel(`api.test:${silent}`);
  assert.match(connected, /^HTTP\/1\.1 200 /);
  const stuck = tlsConnect({ socket, servername: "api.test", ca: workspace.certificate });
  t.after(() => stuck.destroy());
  stuck.write(`${head}Host: api.test:${silent}\r\nContent-Length: 2\r\n\r\n{}`);
  const [late] = (await once(stuck, "data")) as [Buffer];
  assert.match(late.toString(), /^HTTP\/1\.1 504 .*\r\nproxy-error: body_not_taken\r\n/);
});

describe("tokens of the workload's identity", () => {
  const token = (audience: string): string => `token.for.${Buffer.from(audience).toString("base64url")}`;
  const vault = "https://vault.test";
  const network: NetworkSpec = {
    proxy: {
      routing: [
        {
          destinations: ["api.test"],
          headers: { Authorization: `Bearer {{IDENTITY:${vault}}}` },
          body: { jwt: "{{IDENTITY:sts}}" },
        },
        { destinations: ["echo.test"], headers: { "X-Token": "{{IDENTITY:sts}}" }, redact: true },
      ],
    },
  };
  const identityOf = async (uid: string, audience: string): Promise<string> => {
    assert.equal(uid, "box");
    return token(audience);
  };

  test("are filled in where the route names an audience, and for no audience that the workload names", async (t) => {
    const { ask, seen } = await routedPlace(t, undefined, network, { identityOf });
    const headers = {
      "content-type": "application/json",
      "x-more": `{{IDENTITY:sts}} {{IDENTITY:other}} {{IDENTITY:${vault}/}}`,
    };
    await ask("api.test", { method: "POST", headers, body: '{"a":"{{IDENTITY:other}}"}' });
    const [got] = seen;
    assert.equal(got?.headers.authorization, `Bearer ${token(vault)}`);
    assert.equal(got?.headers["x-more"], `${token("sts")} {{IDENTITY:other}} {{IDENTITY:${vault}/}}`);
    assert.deepEqual(JSON.parse(got?.body ?? ""), { jwt: token("sts"), a: "{{IDENTITY:other}}" });
    await ask("plain.test", { headers: { "x-more": "{{IDENTITY:sts}}" } });
    assert.equal(seen[1]?.headers["x-more"], "{{IDENTITY:sts}}", "a host without a route");
    await ask("echo.test", { headers: { "x-more": `{{IDENTITY:${vault}}}` } });
    assert.equal(seen[2]?.headers["x-more"], `{{IDENTITY:${vault}}}`, "an audience of another route");
  });

  test("are redacted in answers like secrets", async (t) => {
    const answer: RequestListener = ({ headers }, response) => response.end(`it is ${headers["x-token"]}`);
    const { ask } = await routedPlace(t, answer, network, { identityOf });
    assert.equal((await ask("echo.test")).text, "it is [redacted]");
  });

  test("a request whose token cannot be made does not leave", async (t) => {
    const { ask, seen } = await routedPlace(t, undefined, network);
    const { status, headers } = await ask("api.test");
    assert.deepEqual([status, headers["proxy-error"], seen.length], [503, "identity_unavailable", 0]);
  });

  test("a route names audiences that a token can have, and not more than ten", () => {
    const route = (text: string) => () =>
      compileNetwork({ proxy: { routing: [{ destinations: ["a.test"], headers: { "x-a": text } }] } });
    assert.throws(route("{{IDENTITY:a b}}"), /names no audience/);
    assert.throws(route('{{IDENTITY:a"b}}'), /names no audience/);
    assert.throws(route(Array.from({ length: 11 }, (_, n) => `{{IDENTITY:a${n}}}`).join("")), /11 audiences/);
  });
});

describe("requests in disguise", () => {
  const rules = [{ action: "deny" as const, methods: ["DELETE"], path: "/keep*" }];

  test("a body of a request that has none by custom is never read as a second request", async (t) => {
    const { secure, seen, port } = await routedPlace(t, undefined, { ...NETWORK, firewall: { rules } });
    const stream = await secure("api.test", { alpn: ["h2"] });
    const client = connectHttp2(`https://api.test:${port}`, { createConnection: () => stream });
    t.after(() => client.destroy());
    for (const method of ["GET", "HEAD", "OPTIONS", "DELETE"]) {
      const sent = client.request({ ":path": "/first", ":method": method }, { endStream: false });
      sent.end(`DELETE /keep HTTP/1.1\r\nHost: plain.test\r\n\r\n`);
      for await (const _ of sent);
    }
    assert.deepEqual(
      seen.map(({ method, url }) => `${method} ${url}`),
      ["GET /first", "HEAD /first", "OPTIONS /first", "DELETE /first"],
    );
  });

  test("a request inside a tunnel names a path, not an address", async (t) => {
    const { ask, seen, port } = await routedPlace(t, undefined, { ...NETWORK, firewall: { rules } });
    for (const path of [`https://plain.test:${port}/`, `http://api.test:${port}/keep`, "/v1/#/../../keep"]) {
      const { status, headers } = await ask("api.test", { method: "DELETE", path });
      assert.deepEqual([status, headers["proxy-error"]], [400, "malformed_request"], path);
    }
    const { status } = await ask("api.test", { method: "OPTIONS", path: "*" });
    assert.deepEqual([status, seen.map(({ url }) => url)], [200, ["*"]]);
  });

  test("a request that a server repeats as its answer gets no secret", async (t) => {
    const { ask, seen } = await routedPlace(t);
    const { status, headers } = await ask("api.test", { method: "TRACE" });
    assert.deepEqual([status, headers["proxy-error"], seen.length], [405, "method_refused", 0]);
    assert.equal((await ask("methods.test", { method: "TRACE" })).status, 200);
  });

  test("an offer of a protocol that hides requests is ignored; an offer keeps no answer from being redacted", async (t) => {
    const { ask, seen } = await routedPlace(t, ({ headers: { authorization = "" } }, response) => {
      response.writeHead(200, `it is ${authorization}`, { "x-echo": authorization });
      response.write(authorization.slice(0, 5));
      setImmediate(() => response.end(authorization.slice(5)));
    });
    const offers = ["h2c", "websocket, H2C", "HTTP/2.0", "TLS/1.2"];
    for (const upgrade of offers) await ask("api.test", { headers: { connection: "Upgrade", upgrade } });
    assert.deepEqual(
      seen.map(({ headers }) => headers.upgrade),
      offers.map(() => undefined),
    );
    const { text, headers } = await ask("echo.test", { headers: { connection: "Upgrade", upgrade: "websocket" } });
    assert.deepEqual([text, headers["x-echo"]], ["[redacted]", "[redacted]"]);
  });

  test("TLS whose first message cannot be read is refused", async (t) => {
    const { tunnel, seen, port, server } = await routedPlace(t);
    let connections = 0;
    server.on("secureConnection", () => {
      connections += 1;
    });
    const { socket } = await tunnel(`api.test:${port}`);
    const record = Buffer.concat([Buffer.from([22, 3, 1, 0x40, 0]), Buffer.from([1, 1, 0, 0]), Buffer.alloc(16_380)]);
    socket.resume();
    socket.write(record);
    const [alert] = (await once(socket, "data")) as [Buffer];
    assert.equal(alert.toString("hex"), "15030300020231");
    assert.deepEqual([seen.length, connections], [0, 0]);
  });
});
