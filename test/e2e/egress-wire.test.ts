/** Connections of workloads leave from the addresses of their egress gateway; a listener sees the source. */
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { after, before, describe, type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { unknownWorkspaces } from "../../src/composition/unknown-workspaces.ts";
import { createOutboundRules, type OutboundRules } from "../../src/kinds/workload/outbound-rules.ts";
import { createWorkspaceAuthorities } from "../../src/kinds/workload/workspace-authority.ts";
import { parseHost } from "../../src/lib/network/egress/host.ts";
import { parseOperatorNetwork } from "../../src/lib/network/egress/operator-networks.ts";
import { type EgressProxy, startEgressProxy } from "../../src/node/egress/egress-proxy.ts";
import { WORKSPACE_AUTHORITIES } from "../../src/store/sealing/sealed-columns.ts";
import { type Answer, startTestPlatform, type TestPlatform } from "../platform.ts";
import { readUntil } from "./read-until.ts";

/** Every address of 127.0.0.0/8 is on this machine; the last one of the pool is on no machine. */
const POOL = ["127.0.0.21", "127.0.0.22", "127.0.0.23", "203.0.113.9"];
const GATEWAYS = "/vpcs/default/egressgateways";

describe("egress addresses on the wire", () => {
  let platform: TestPlatform;
  let proxy: EgressProxy;
  let rules: OutboundRules;
  const closing: (() => unknown)[] = [];
  /** What the probe answers; null: the address of its client. */
  let probeAnswer: string | null = null;
  let listenerPort = 0;

  before(async () => {
    const probe = createHttpServer((incoming, response) =>
      response.end(`${JSON.stringify({ ip: probeAnswer ?? incoming.socket.remoteAddress })}\n`),
    );
    const listener = createServer((socket) => {
      socket.on("error", () => {});
      socket.write(`${socket.remoteAddress}\n`);
    });
    for (const server of [probe, listener]) {
      server.listen(0, "127.0.0.1");
      await once(server, "listening");
      closing.push(() => server.close());
    }
    listenerPort = (listener.address() as AddressInfo).port;
    const { port } = probe.address() as AddressInfo;
    platform = await startTestPlatform({
      config: { egress_pool: POOL.join(","), egress_probe: `http://127.0.0.1:${port}/` },
    });
    const { store } = platform.app;
    rules = createOutboundRules({
      networks: [],
      ...{ store, node: (await platform.call("GET", "/nodes")).body[0].id, onError: assert.fail },
      driver: () => ({ observe: async () => null }),
    });
    proxy = startEgressProxy({ rules, allowed: (_, __, address) => address.startsWith("127.0.0.") });
    closing.push(
      () => rules.stop(),
      () => proxy.stop(),
    );
  });
  after(async () => {
    for (const close of closing.reverse()) await close();
    await platform.stop();
  });

  const make = async (path: string, name: string, spec: object) => {
    const made = await platform.call("POST", path, { body: { metadata: { name }, spec } });
    assert.equal(made.status, 200, JSON.stringify(made.body));
    return made.body;
  };
  const addIp = async (gateway: string, name: string): Promise<string> => {
    const made = await make(`${GATEWAYS}/${gateway}/ips`, name, { ipFamily: "IPv4" });
    return made.spec.publicIp;
  };
  const ipUntil = (gateway: string, name: string, status: string) =>
    readUntil(platform.call, `${GATEWAYS}/${gateway}/ips/${name}`, (ip) => ip.status === status);
  const boxBehind = async (gateway: string, name: string): Promise<string> => {
    const network = { egress: { mode: "dedicated", gateway } };
    const { uid } = (await make("/sandboxes", name, { network })).metadata;
    rules.own({ uid });
    return uid;
  };

  /** A connection of a workload through the proxy; the first line of the listener is the source that it saw. */
  async function open(t: TestContext, uid: string, host = "127.0.0.1"): Promise<{ answer: string; client: Socket }> {
    const door = createServer({ allowHalfOpen: true }, (socket) => proxy.serve(uid, socket));
    door.listen(0, "127.0.0.1");
    await once(door, "listening");
    const client = connect((door.address() as AddressInfo).port, "127.0.0.1");
    client.on("error", () => {}); // a cut connection
    t.after(() => {
      client.destroy();
      door.close();
    });
    client.write(`CONNECT ${host}:${listenerPort} HTTP/1.1\r\nHost: x\r\n\r\n`);
    let text = "";
    while (!/\r\n\r\n.*\n$/s.test(text)) {
      const [chunk] = (await once(client, "data")) as [Buffer];
      text += chunk;
    }
    client.resume();
    return { answer: text.slice(text.indexOf("\r\n\r\n") + 4).trim() || text, client };
  }

  const source = async (t: TestContext, uid: string, host?: string) => (await open(t, uid, host)).answer;

  /** Waits until the proxy uses what the records say. */
  async function sourceUntil(t: TestContext, uid: string, expected: RegExp): Promise<void> {
    while (!expected.test(await source(t, uid))) await delay(20);
  }

  test("a workload leaves from the addresses of its gateway and no others, live", async (t) => {
    await make(GATEWAYS, "gw", {});
    const box = await boxBehind("gw", "box");
    const plain = (await make("/sandboxes", "plain", {})).metadata.uid;
    assert.match(await source(t, box), /gateway 'gw' has no address/, "no address, no way out");
    assert.equal(await source(t, plain), "127.0.0.1");

    const first = await addIp("gw", "one");
    assert.equal(first, POOL[0]);
    const deployed = await ipUntil("gw", "one", "DEPLOYED");
    assert.match(deployed.events.at(-1)?.message ?? "", /127\.0\.0\.21: the probe http.* saw it/);
    await sourceUntil(t, box, /^127\.0\.0\.21$/);
    assert.equal(await source(t, plain), "127.0.0.1");
    const gateway = await readUntil(platform.call, `${GATEWAYS}/gw`, ({ status }) => status === "DEPLOYED");
    assert.match(gateway.events.at(-1)?.message ?? "", /leave from 127\.0\.0\.21\./);
    assert.deepEqual((await platform.call<Record<string, Answer["body"]>>("GET", "/publicIps")).body.local?.ipv4Cidrs, [
      "127.0.0.21/32",
    ]);

    // Another address in place of the first: the open connection is cut, since its address may be another tenant's.
    const { client } = await open(t, box);
    const cut = once(client, "close");
    assert.equal(await addIp("gw", "two"), POOL[1]);
    await ipUntil("gw", "two", "DEPLOYED");
    await platform.call("DELETE", `${GATEWAYS}/gw/ips/one`);
    await cut;
    await sourceUntil(t, box, /^127\.0\.0\.22$/);
  });

  test("several addresses are used in turn, or the same one for a destination", async (t) => {
    await make(GATEWAYS, "turning", { addressChoice: "turn" });
    const box = await boxBehind("turning", "turner");
    const addresses = [await addIp("turning", "a"), await addIp("turning", "b")].sort();
    for (const name of ["a", "b"]) await ipUntil("turning", name, "DEPLOYED");
    const seen = async (count: number, host?: string): Promise<string[]> => {
      const sources: string[] = [];
      for (let n = 0; n < count; n++) sources.push(await source(t, box, host));
      return [...new Set(sources)].sort();
    };
    let turned = await seen(2);
    while (turned.length < 2) turned = await seen(2);
    assert.deepEqual(turned, addresses);
    for (const name of ["a", "b"]) await platform.call("DELETE", `${GATEWAYS}/turning/ips/${name}`);

    await make(GATEWAYS, "sticky", {});
    const sticky = await boxBehind("sticky", "sticker");
    for (const name of ["a", "b"]) await addIp("sticky", name);
    for (const name of ["a", "b"]) await ipUntil("sticky", name, "DEPLOYED");
    await sourceUntil(t, sticky, /^127/);
    for (const host of ["127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4"]) {
      const once = await source(t, sticky, host);
      for (let n = 0; n < 3; n++) assert.equal(await source(t, sticky, host), once);
    }
    for (const name of ["a", "b"]) await platform.call("DELETE", `${GATEWAYS}/sticky/ips/${name}`);
  });

  test("a sandbox shows the bandwidth that holds: the lowest of its own, its workspace's and the server's", async () => {
    const network = { bandwidth: { sendMbps: 50, receiveMbps: 0.05 } };
    const low = await platform.call("POST", "/sandboxes", { body: { metadata: { name: "low" }, spec: { network } } });
    assert.match(low.body.message, /^spec\.network\.bandwidth\.receiveMbps: /);
    const { uid } = (await make("/sandboxes", "slow", { network: { bandwidth: { sendMbps: 50 } } })).metadata;
    rules.own({ uid });
    const shows = (sendMbps: number | null, receiveMbps: number | null) =>
      readUntil(
        platform.call,
        "/sandboxes/slow",
        ({ bandwidth }) => JSON.stringify(bandwidth) === JSON.stringify({ sendMbps, receiveMbps }),
      );
    assert.deepEqual((await rules.of(uid)).bandwidth, { sendMbps: 50, receiveMbps: null });
    await shows(50, null);
    const policy = { type: "network", network: { bandwidth: { sendMbps: 20, receiveMbps: 30 } } };
    await make("/policies", "slow", policy);
    await shows(20, 30);
    assert.deepEqual((await rules.of(uid)).bandwidth, { sendMbps: 20, receiveMbps: 30 });
    const usage = async () => (await platform.call("GET", "/policies/slow")).body.usage;
    await make("/applications", "ruled", { image: "service/base-image:latest", port: 80 });
    const { data } = (await platform.call("GET", "/sandboxes")).body;
    const others = { agents: 0, applications: 1, functions: 0, jobs: 0, models: 0 };
    assert.deepEqual(await usage(), { ...others, sandboxes: data.length });
    const usages = async () =>
      (await platform.call<Record<string, { name: string }[]>>("GET", "/policies/slow/usages")).body;
    const namesOf = (list: { name: string }[] = []): string[] => list.map(({ name }) => name).sort();
    const { sandboxes, applications, agents } = await usages();
    assert.deepEqual(namesOf(sandboxes), namesOf(data.map(({ metadata }: Answer["body"]) => metadata)));
    assert.deepEqual([applications, agents], [[{ name: "ruled", workspace: "main", type: "application" }], []]);
    const narrow = { metadata: { name: "slow" }, spec: { ...policy, resourceTypes: ["job"] } };
    assert.equal((await platform.call("PUT", "/policies/slow", { body: narrow })).status, 200);
    assert.equal((await usage()).sandboxes, 0, "a policy for jobs");
    assert.deepEqual(Object.values(await usages()).flat(), []);
    await platform.call("DELETE", "/policies/slow");
    await shows(50, null);
  });

  test("workspaces that vpc_networks names and nobody has made are told once", async () => {
    const texts = ["10.1.0.0/16", "main=10.2.0.0/16", "mian=10.3.0.0/16", "mian=10.4.0.0/16", "team=10.5.0.0/16"];
    const networks = texts.map((text) => parseOperatorNetwork(text, "vpc_networks"));
    assert.deepEqual(await unknownWorkspaces(networks, platform.app.store), ["mian", "team"]);
  });

  test("a server without address translation says what a gateway is worth there, once", async () => {
    await make(GATEWAYS, "told", {});
    const body = { metadata: { name: "asks" }, spec: { network: { egress: { mode: "dedicated", gateway: "told" } } } };
    const made = await platform.call("POST", "/sandboxes", { body });
    assert.match(
      made.headers.get("warning") ?? "",
      /no address translation \(nft\): only connections through the proxy/,
    );
    const again = await platform.call("PUT", "/sandboxes/asks", { body });
    assert.deepEqual([again.status, again.headers.get("warning")], [200, null]);
  });

  test("a policy takes 10,000 domains, judges each by itself, and refuses one more with the field", async () => {
    const domains = Array.from({ length: 10_000 }, (_, n) => (n % 2 ? `host-${n}.test` : `*.zone-${n}.test`));
    const body = (allowedDomains: string[]) => ({
      body: { metadata: { name: "many" }, spec: { type: "network", network: { proxy: { allowedDomains } } } },
    });
    const refused = await platform.call("POST", "/policies", body([...domains, "one.more.test"]));
    assert.equal(refused.status, 400);
    assert.match(refused.body.message, /^spec\.network\.proxy\.allowedDomains: /);
    const bad = await platform.call("POST", "/policies", body([...domains.slice(1), "not a host"]));
    assert.equal(bad.status, 400);
    assert.match(bad.body.message, /^spec\.network\.proxy\.allowedDomains\[9999\]: /);
    assert.equal((await platform.call("GET", "/policies/many")).status, 404, "nothing half-applied");
    assert.equal((await platform.call("POST", "/policies", body(domains))).status, 200);
    const { uid } = (await make("/sandboxes", "listed", {})).metadata;
    rules.own({ uid });
    const { policy } = await rules.of(uid);
    const isAllowed = (text: string): boolean => policy.judgeName(parseHost(text) ?? assert.fail(text)).allowed;
    for (const domain of domains) {
      const name = domain.replace("*", "www");
      assert.ok(isAllowed(name), name);
      assert.ok(!isAllowed(`x${domain.replace("*.", "")}`), "a name that only ends alike");
    }
    await platform.call("DELETE", "/policies/many");
  });

  test("a workspace's authority is sealed, is made anew after a year and signs 90 days later", async () => {
    const { store } = platform.app;
    const dayMs = 86_400_000;
    let now = Date.now();
    const authorities = createWorkspaceAuthorities({ store, clock: { now: () => now }, brand: "Test" });
    const signer = async (): Promise<string> =>
      new X509Certificate((await authorities.credentialOf("main", "api.test")).certificate).issuer;
    const subjects = async (): Promise<string[]> =>
      (await authorities.trusted("main")).map((pem) => new X509Certificate(pem).subject);
    const [first = ""] = await subjects();
    assert.equal(await signer(), first);
    now += 366 * dayMs;
    const [kept, second = ""] = await subjects();
    assert.deepEqual([kept, await signer()], [first, first], "workloads that run do not trust the second one yet");
    now += 91 * dayMs;
    assert.equal(await signer(), second);
    now += 366 * dayMs;
    assert.ok(!(await subjects()).includes(first), "an authority that has ended");
    const key = `${WORKSPACE_AUTHORITIES}${(await store.workspaces.get("main"))?.id}`;
    const record = await store.records.read(key);
    assert.ok(record && !/PRIVATE|BEGIN|certificate/.test(record), "sealed in the store");
  });

  test("an address that a probe does not see is FAILED, and nothing leaves from it", async (t) => {
    probeAnswer = "198.51.100.44";
    t.after(() => {
      probeAnswer = null;
    });
    await make(GATEWAYS, "hidden", {});
    const box = await boxBehind("hidden", "hider");
    await addIp("hidden", "one");
    const failed = await ipUntil("hidden", "one", "FAILED");
    assert.match(failed.events.at(-1)?.message ?? "", /saw 198\.51\.100\.44 instead of 127\.0\.0\.\d+/);
    assert.match(await source(t, box), /has no address/);
  });
});
