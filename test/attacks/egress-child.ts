/**
 * Run by egress.test.ts in network and mount namespaces of its own, which play a machine with public addresses. A
 * service of the machine listens on all of them; whoever reaches it on behalf of a tenant has broken out.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { createIdentityProvider } from "../../src/auth/external/identity-provider.ts";
import { createOutbound } from "../../src/lib/network/outbound-http.ts";
import { createOutboundPost } from "../../src/lib/network/outbound-post.ts";
import { systemClock } from "../../src/lib/time/clock.ts";
import { startEgressProxy } from "../../src/node/egress/egress-proxy.ts";
import { ip, startChangingNames } from "./changing-names.ts";

const OWN = "203.0.113.7";
const OWN_V6 = "2606:4700:113::7";
const LATER = "203.0.113.99";
const METADATA = "169.254.169.254";

ip("link", "set", "lo", "up");
for (const address of [`${OWN}/32`, `${METADATA}/32`]) ip("address", "add", address, "dev", "lo");
// Kernels without IPv6 do not reach such an address, which is what is asserted below.
const hasV6 = spawnSync("ip", ["address", "add", `${OWN_V6}/128`, "dev", "lo"]).status === 0;

let reached = 0;
/** Where the service sends whoever asks; empty: it answers. */
let elsewhere = "";
const service = createServer((socket) => {
  reached += 1;
  socket.on("error", () => {});
  if (elsewhere !== "")
    socket.end(`HTTP/1.1 307 Go\r\nlocation: ${elsewhere}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`);
  else socket.end("HTTP/1.1 200 OK\r\ncontent-length: 6\r\nconnection: close\r\n\r\nsecret");
});
service.listen(0, hasV6 ? "::" : "0.0.0.0");
await once(service, "listening");
const { port } = service.address() as AddressInfo;

/** Questions for slow names are answered when `slowReleased` is. */
const [slowAsked, slowReleased] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
const names = await startChangingNames(
  (name) => [name.startsWith("meta") ? METADATA : OWN],
  async (query) => {
    if (!query.includes("slow")) return;
    slowAsked.resolve();
    await slowReleased.promise;
  },
);
const { asked } = names;

const proxy = startEgressProxy();
const door = createServer({ allowHalfOpen: true }, (socket) => proxy.serve("box", socket));
door.listen(0, "127.0.0.1");
await once(door, "listening");
const doorPort = (door.address() as AddressInfo).port;

async function throughProxy(line: string): Promise<string> {
  const socket = connect(doorPort, "127.0.0.1");
  socket.write(`${line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
  let answer = "";
  for await (const chunk of socket) answer += chunk;
  return answer;
}

const outbound = createOutbound({ privateAddresses: false });
const lenient = createOutbound({ privateAddresses: true });
const post = createOutboundPost({ privateAddresses: false });
const signal = (): AbortSignal => AbortSignal.timeout(60_000);
const get = (door: typeof outbound, host: string): Promise<unknown> =>
  door.request(`http://${host}:${port}/`, { method: "GET", headers: {}, signal: signal(), bytesMax: 1000 });
const send = (host: string): Promise<unknown> =>
  post({ url: `http://${host}:${port}/`, headers: {}, body: "{}", signal: signal() });

const own4 = (address: string): string[] => {
  const [a = 0, b = 0, c = 0, d = 0] = address.split(".").map(Number);
  const hex = `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
  return [
    ...[`::ffff:${address}`, `::FFFF:${address}`, `0::ffff:${address}`, `0:0:0:0:0:ffff:${address}`, `::ffff:${hex}`],
    ...[`::ffff:${hex.toUpperCase()}`, `0000:0000:0000:0000:0000:ffff:${hex}`, `::${address}`, `64:ff9b::${hex}`],
    ...[`64:ff9b::${address}`, `64:ff9b:1::${hex}`, `2002:${hex}::1`, `2001:0:${hex}::1`, `::ffff:0:${address}`],
  ];
};
const spellings = [
  ...[OWN_V6, OWN_V6.toUpperCase(), "2606:4700:0113:0:0::0007", "2606:4700:113:0:0:0:0:7", "0::1", "::0:1"],
  ...[...own4(OWN), ...own4("127.0.0.1"), ...own4("10.0.0.1"), ...own4("168.63.129.16"), "100::1", "::", "fec0::1"],
].map((address) => `[${address}]`);

try {
  await attack();
} finally {
  await proxy.stop();
  await outbound.stop();
  await lenient.stop();
  for (const each of [service, door]) each.close();
  names[Symbol.dispose]();
}

async function attack(): Promise<void> {
  for (const host of [OWN, METADATA, "168.63.129.16", ...spellings]) {
    for (const line of [`CONNECT ${host}:${port}`, `GET http://${host}:${port}/`])
      assert.match(await throughProxy(line), /^HTTP\/1\.1 40[03]/, line);
    await assert.rejects(get(outbound, host), `a connection to ${host}`);
    await assert.rejects(send(host), `a callback to ${host}`);
  }
  assert.equal(reached, 0, "an address of the machine was reached");

  // Rebinding: whichever answer was judged is the one that is dialled, so the machine is never reached.
  for (let round = 0; round < 4; round++) {
    assert.match(await throughProxy(`CONNECT proxy.test:${port}`), /^HTTP\/1\.1 (403|502)/);
    assert.match(await throughProxy(`GET http://plain.test:${port}/`), /^HTTP\/1\.1 (403|502)/);
    await assert.rejects(get(outbound, "connection.test"));
    await assert.rejects(send("callback.test"));
    // Where private addresses are allowed, those where clouds serve machine credentials are not.
    await assert.rejects(get(lenient, "meta.test"));
    await assert.rejects(signIn("meta-idp.test"));
  }
  assert.equal(reached, 0, "a name led to the machine");
  for (const name of ["proxy.test", "plain.test", "connection.test", "callback.test", "meta.test", "meta-idp.test"])
    assert.ok((asked.get(name) ?? 0) >= 2, `${name} was resolved`);

  // A name server that never answers keeps no thread of this process, and so no look-up of anybody else.
  const slow = Promise.allSettled([throughProxy(`CONNECT slow.test:${port}`), get(outbound, "slow.test")]);
  await slowAsked.promise;
  assert.ok(!process.getActiveResourcesInfo().includes("GetAddrInfoReqWrap"), "a thread waits for a tenant's name");
  slowReleased.resolve();
  await slow;

  // An address that the machine gets later is its own, too.
  ip("address", "add", `${LATER}/32`, "dev", "lo");
  for (const host of [LATER, `[::ffff:${LATER}]`]) {
    assert.match(await throughProxy(`CONNECT ${host}:${port}`), /^HTTP\/1\.1 403/, host);
    await assert.rejects(get(outbound, host));
  }
  assert.equal(reached, 0, "a new address of the machine was reached");

  // The service is there, and operators who allow private addresses get to it: the refusals above mean something.
  await get(lenient, OWN);
  assert.equal(reached, 1);

  // A redirect is an answer like any other: nobody goes where it leads, least of all with what was sent.
  const lenientPost = createOutboundPost({ privateAddresses: true });
  for (const target of [METADATA, "127.0.0.1", "[::ffff:127.0.0.1]", "[::ffff:a9fe:a9fe]", "localhost", "2852039166"]) {
    elsewhere = `http://${target}:${port}/latest/meta-data/`;
    reached = 0;
    await get(lenient, OWN);
    assert.equal(await lenientPost({ url: `http://${OWN}:${port}/`, headers: {}, body: "{}", signal: signal() }), 307);
    await assert.rejects(signIn(OWN));
    assert.equal(reached, 3, `followed to ${target}`);
  }
}

function signIn(host: string): Promise<unknown> {
  const provider = createIdentityProvider(
    {
      ...{ id: "x", name: "X", issuer: `http://${host}:${port}`, client_id: "berth", scopes: "openid" },
      ...{ groups_claim: "groups", domains: [], create_users: true },
    },
    { clock: systemClock, outbound: lenient },
  );
  return provider.authorizationUrl({ state: "s", nonce: "n", codeChallenge: "c", redirectUri: "http://127.0.0.1/" });
}
