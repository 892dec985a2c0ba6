/** Outbound rules at the proxy: real sockets, real TLS, servers on loopback. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import { createServer, type Socket } from "node:net";
import { describe, test } from "node:test";
import { createServer as createTlsServer, connect as tlsConnect } from "node:tls";
import { listen, ruledPlace } from "../../../test/egress-place.ts";
import { testAuthority } from "../../../test/tls-credential.ts";
import { outboundPolicy } from "../../lib/network/egress/outbound-policy.ts";
import { readClientHello } from "./client-hello.ts";
import { parseAuthority } from "./target.ts";
import { flightRefusal } from "./tunnel.ts";

const authority = testAuthority();
const ALLOW = { proxy: { allowedDomains: ["good.test"] } };
const DENY = { proxy: { forbiddenDomains: ["bad.test"] } };
const DENY_RULE = { firewall: { rules: [{ action: "deny" as const, domains: ["bad.test"] }] } };

/** A TLS server that answers with the name it was asked for, and counts connections. */
function tlsServer() {
  const { certificate: cert, key } = authority.credentialOf("good.test");
  const server = createTlsServer({ cert, key }, (socket) => socket.end(`hello ${socket.servername || "nobody"}`));
  server.on("tlsClientError", () => {});
  return server;
}

/** What a TLS client gets through the tunnel; the error's code when it gets nothing. */
async function overTls(socket: Socket, servername: string): Promise<string> {
  const secure = tlsConnect({ socket, servername, ca: authority.certificate, checkServerIdentity: () => undefined });
  try {
    let text = "";
    for await (const chunk of secure) text += chunk;
    return text;
  } catch (error) {
    return (error as { code?: string }).code ?? "broken";
  }
}

describe("refused hosts", () => {
  test("a tunnel and a plain request get 403, firewall_blocked and the rule, and the name is never resolved", async (t) => {
    const { ask, tunnel, refused, resolved } = await ruledPlace(t, ALLOW);
    const { head } = await tunnel("bad.test:443");
    assert.match(head, /^HTTP\/1\.1 403 /);
    assert.match(head, /Proxy-Error: firewall_blocked\r\n/);
    assert.match(head, /bad\.test is refused by spec\.network\.proxy\.allowedDomains\./);
    const plain = await ask("GET http://BAD.test./ HTTP/1.1\r\nHost: good.test\r\n\r\n");
    assert.match(plain, /^HTTP\/1\.1 403 .*proxy-error: firewall_blocked/s);
    assert.deepEqual(resolved, []);
    const rule = "spec.network.proxy.allowedDomains";
    assert.deepEqual(refused, [
      { code: "firewall_blocked", host: "bad.test", port: 443, rule },
      { code: "firewall_blocked", host: "bad.test", port: 80, rule },
    ]);
  });

  test("an address in every spelling gains nothing over an allow-list", async (t) => {
    const { tunnel } = await ruledPlace(t, ALLOW);
    for (const host of ["127.0.0.1", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]", "0177.0.0.1"])
      assert.match((await tunnel(`${host}:443`)).head, /firewall_blocked|malformed/, host);
  });

  test("a name is judged by the address that will be dialled", async (t) => {
    let asked = 0;
    const flip = async (): Promise<string[]> => (asked++ === 0 ? ["127.0.0.1"] : ["203.0.113.9"]);
    const network = { firewall: { rules: [{ action: "deny" as const, cidr: "127.0.0.0/8" }] } };
    const { tunnel } = await ruledPlace(t, network, { resolve: flip });
    assert.match((await tunnel("rebind.test:443")).head, /403 .*spec\.network\.firewall\.rules\[0\]/s);
    assert.equal(asked, 1);
  });

  test("without readable rules nothing leaves", async (t) => {
    const rules = { of: () => Promise.reject(new Error("the database is away")), onChange: () => () => {} };
    const { tunnel } = await ruledPlace(t, {}, { rules });
    assert.match((await tunnel("good.test:443")).head, /^HTTP\/1\.1 503 .*rules_unavailable/s);
  });
});

describe("TLS in a tunnel", () => {
  const CASES: readonly [why: string, network: object, authority: string, servername: string, seen: RegExp][] = [
    ["the host that was asked for", ALLOW, "good.test", "good.test", /^hello good\.test$/],
    ["in capitals", ALLOW, "good.test", "GOOD.test", /^hello GOOD\.test$/i],
    ["another host of the same server", ALLOW, "good.test", "bad.test", /^ERR_SSL/],
    ["no host, with an allow-list", ALLOW, "good.test", "", /^ERR_SSL/],
    ["no host, with a deny-list", DENY, "good.test", "", /^hello nobody$/],
    ["a forbidden host behind an address", DENY, "127.0.0.1", "bad.test", /^ERR_SSL/],
    ["another host behind an address", DENY, "127.0.0.1", "good.test", /^hello good\.test$/],
    ["a host that a rule denies behind an address", DENY_RULE, "127.0.0.1", "bad.test", /^ERR_SSL/],
    ["without rules", {}, "good.test", "bad.test", /^hello bad\.test$/],
  ];
  for (const [why, network, host, servername, seen] of CASES)
    test(`${why}: ${host} asked for as '${servername}'`, async (t) => {
      const port = await listen(t, tlsServer());
      const { tunnel } = await ruledPlace(t, network);
      const { head, socket } = await tunnel(`${host}:${port}`);
      assert.match(head, /^HTTP\/1\.1 200 /);
      assert.match(await overTls(socket, servername), seen);
    });

  test("a first message in many pieces and records is read whole", async (t) => {
    const hello = await clientHello("bad.test");
    const body = hello.subarray(5);
    const records = [...body].map((byte) => Buffer.from([22, 3, 1, 0, 1, byte]));
    assert.deepEqual(readClientHello(Buffer.concat(records)), { serverName: "bad.test", encrypted: false });
    for (let length = 1; length < hello.length; length++)
      assert.equal(readClientHello(hello.subarray(0, length)), "more");
    const port = await listen(t, tlsServer());
    const { tunnel } = await ruledPlace(t, ALLOW);
    const { socket } = await tunnel(`good.test:${port}`);
    for (const record of records) socket.write(record);
    assert.equal(Buffer.from(await reader(socket)(/1$/), "latin1").toString("hex"), "15030300020231");
  });

  for (const [what, first] of [
    // Length, CLIENT-HELLO, version 3.1, 3 bytes of ciphers, no session, 16 bytes of challenge: as OpenSSL sent it.
    ["SSLv2 that offers TLS", `\x80\x1c\x01\x03\x01\x00\x03\x00\x00\x00\x10\x00\x00\x2f${"c".repeat(16)}`],
    ["SSLv2", `\x80\x1c\x01\x00\x02\x00\x03\x00\x00\x00\x10\x01\x00\x80${"c".repeat(16)}`],
    ["HTTP behind empty lines", "\r\n\n\r\nGET / HTTP/1.1\r\nHost: bad.test\r\n\r\n"],
  ] as const)
    test(`a first message of ${what} does not pass a list of allowed domains, on any port and in any pieces`, async (t) => {
      const heard: string[] = [];
      const port = await listen(
        t,
        createServer((socket) => {
          socket.on("error", () => {});
          socket.on("data", (chunk) => heard.push(chunk.toString("latin1")));
        }),
      );
      const { tunnel } = await ruledPlace(t, ALLOW);
      for (const pieces of [[first], [...first]]) {
        const { head, socket } = await tunnel(`good.test:${port}`);
        assert.match(head, /^HTTP\/1\.1 200 /);
        for (const piece of pieces) socket.write(piece, "latin1");
        socket.end();
        socket.resume();
        await once(socket, "close");
      }
      assert.deepEqual(heard, []);
    });

  test("an encrypted name is refused with an allow-list; bytes that only look like TLS are no name", async () => {
    const allow = outboundPolicy([{ place: "x", rules: ALLOW }]);
    const deny = outboundPolicy([{ place: "x", rules: DENY }]);
    const target = parseAuthority("good.test:443");
    assert.ok(target);
    const encrypted = withExtension(await clientHello("good.test"), 0xfe0d);
    const hello = readClientHello(encrypted);
    assert.ok(typeof hello === "object" && hello.encrypted);
    const flight = { protocol: "tls", hello, bytes: encrypted } as const;
    assert.match(flightRefusal(flight, target, allow) ?? "", /ECH/);
    assert.equal(flightRefusal(flight, target, deny), null);
    const other = { protocol: "other", bytes: Buffer.from("SSH-2.0") } as const;
    assert.match(flightRefusal(other, target, allow) ?? "", /tells its host/);
    assert.equal(flightRefusal(other, { ...target, port: 22 }, allow), null);
    for (const bytes of ["\x16\x02", "\x16\x03\x01\xff\xff", "\x17\x03\x03", "\x16\x03\x01\x00\x01\x02"])
      assert.equal(readClientHello(Buffer.from(bytes, "latin1")), "other");
  });
});

describe("plain HTTP in a tunnel", () => {
  test("every request is judged: its host, its method and its path", async (t) => {
    const seen: string[] = [];
    const port = await listen(
      t,
      createHttpServer((incoming, response) => {
        seen.push(`${incoming.method} ${incoming.headers.host} ${incoming.url}`);
        response.end("yes");
      }),
    );
    const rules = [{ action: "deny" as const, methods: ["DELETE"], path: "/keep/*" }];
    const { tunnel, ask } = await ruledPlace(t, { ...ALLOW, firewall: { rules } });
    const { socket } = await tunnel(`good.test:${port}`);
    const read = reader(socket);
    const answers = (request: string, until: RegExp): Promise<string> => {
      socket.write(`${request}\r\n\r\n`);
      return read(until);
    };
    const host = `Host: good.test:${port}`;
    await answers(`GET /a HTTP/1.1\r\n${host}`, /^HTTP\/1\.1 200 .*yes/s);
    await answers(`DELETE /a HTTP/1.1\r\n${host}`, /^HTTP\/1\.1 200 .*yes/s);
    await answers("GET /a HTTP/1.1\r\nHost: bad.test", /^HTTP\/1\.1 403 .*firewall_blocked.*is refused/s);
    const denied = `http://good.test:${port}/x/..//%6beep/me`;
    assert.match(await ask(`DELETE ${denied} HTTP/1.1\r\nHost: x\r\n\r\n`), /403 .*firewall\.rules\[0\]/s);
    assert.deepEqual(seen, [`GET good.test:${port} /a`, `DELETE good.test:${port} /a`]);
  });

  test("a change of protocol passes", async (t) => {
    const server = createHttpServer();
    server.on("upgrade", (_, socket) => {
      socket.write("HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n");
      socket.pipe(socket);
    });
    const port = await listen(t, server);
    const { tunnel } = await ruledPlace(t, ALLOW);
    const { socket } = await tunnel(`good.test:${port}`);
    const read = reader(socket);
    socket.write(`GET / HTTP/1.1\r\nHost: good.test:${port}\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nfirst `);
    await read(/^HTTP\/1\.1 101 .*\r\n\r\nfirst $/s);
    socket.write("second");
    await read(/^second$/);
  });
});

describe("open connections", () => {
  test("a server that speaks first is heard, and the connection ends when a change forbids it", async (t) => {
    const port = await listen(
      t,
      createServer((socket) => {
        socket.on("error", () => {});
        socket.write("220 ready\n");
        socket.on("data", (chunk) => socket.write(chunk));
      }),
    );
    const { tunnel, rules, refused } = await ruledPlace(t, ALLOW);
    const { socket } = await tunnel(`good.test:${port}`);
    const read = reader(socket);
    await read(/^220 ready\n$/);
    socket.write("echo\n");
    await read(/^echo\n$/);
    rules.set({ proxy: { allowedDomains: ["good.test", "more.test"] } });
    socket.write("still\n");
    await read(/^still\n$/);
    rules.set({ proxy: { allowedDomains: ["more.test"] } });
    await once(socket, "close");
    assert.equal(refused.at(-1)?.rule, "spec.network.proxy.allowedDomains");
  });

  test("one that never told its host ends when a list of allowed domains comes", async (t) => {
    const port = await listen(
      t,
      createServer((socket) => {
        socket.on("error", () => {});
        socket.write("hi");
      }),
    );
    const { tunnel, rules } = await ruledPlace(t, {});
    const { socket } = await tunnel(`good.test:${port}`);
    await reader(socket)(/hi/);
    rules.set(ALLOW);
    await once(socket, "close");
  });
});

/** Reads a socket until its text matches, and forgets the text. */
function reader(socket: Socket): (until: RegExp) => Promise<string> {
  let text = "";
  socket.on("data", (chunk: Buffer) => {
    text += chunk.toString("latin1");
  });
  socket.resume();
  return async (until) => {
    while (!until.test(text)) await once(socket, "data");
    const read = text;
    text = "";
    return read;
  };
}

/** The first message of a real TLS client. */
async function clientHello(servername: string): Promise<Buffer> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  const client = tlsConnect({ port, host: "127.0.0.1", servername });
  client.on("error", () => {});
  const [socket] = (await once(server, "connection")) as [Socket];
  const [bytes] = (await once(socket, "data")) as [Buffer];
  client.destroy();
  socket.destroy();
  server.close();
  return bytes;
}

/** The same message with one more, empty extension. */
function withExtension(hello: Buffer, type: number): Buffer {
  const changed = Buffer.concat([hello, Buffer.from([type >> 8, type & 255, 0, 0])]);
  const extensionsAt = findExtensions(hello);
  changed.writeUInt16BE(changed.readUInt16BE(3) + 4, 3);
  changed.writeUIntBE(changed.readUIntBE(6, 3) + 4, 6, 3);
  changed.writeUInt16BE(changed.readUInt16BE(extensionsAt) + 4, extensionsAt);
  return changed;
}

function findExtensions(hello: Buffer): number {
  let at = 5 + 4 + 2 + 32;
  at += 1 + hello.readUInt8(at);
  at += 2 + hello.readUInt16BE(at);
  return at + 1 + hello.readUInt8(at);
}
