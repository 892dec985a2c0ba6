/** Hosts at and below custom domains: which workload answers, and that nothing else does. */
import assert from "node:assert/strict";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, suite, test } from "node:test";
import { recheckDomains } from "../../src/kinds/custom-domain/upkeep.ts";
import { type DnsServer, startDnsServer } from "../dns-server.ts";
import { FakeMachine, fakeDriver } from "../fake-driver.ts";
import { makeAccount, makeUser } from "../identities.ts";
import { startTestPlatform, type TestPlatform } from "../platform.ts";

suite("hosts of custom domains", () => {
  const app = createServer((req, res) => res.end(`app at ${req.headers.host ?? ""}`));
  let port = 0;
  const machine = new FakeMachine({
    images: ["service/base-image:latest", "service/py-app:latest"],
    portOf: () => port,
  });
  // A program that stays; the port of every workload leads to `app`.
  for (const [name, image] of machine.images) machine.images.set(name, { ...image, argv: ["sleep", "infinity"] });
  let platform: TestPlatform;
  let dns: DnsServer;
  let other: { key: string; workspace: string };

  before(async () => {
    await new Promise<void>((resolve) => app.listen(0, "127.0.0.1", resolve));
    port = (app.address() as AddressInfo).port;
    dns = await startDnsServer();
    platform = await startTestPlatform({
      driver: fakeDriver(machine),
      config: { domain: "edge.example", public_url: "http://api.example.com", dns_servers: dns.address },
    });
    const { id } = await makeAccount(platform.app.store, "other");
    other = { key: (await makeUser(platform.app.store, id, "admin")).key, workspace: "other" };
  });
  after(async () => {
    await platform.stop();
    await dns.stop();
    await machine.dispose();
    app.closeAllConnections();
    app.close();
  });

  const call: TestPlatform["call"] = (method, path, options) => platform.call(method, path, options);
  const made = async (path: string, body: object, as = {}) => {
    const answer = await call("POST", path, { body, ...as });
    assert.ok(answer.status < 300, `${path}: ${JSON.stringify(answer.body)}`);
    return answer.body;
  };
  const publish = ({ metadata, spec }: Awaited<ReturnType<typeof made>>) => {
    for (const [name, value] of Object.entries(spec.txtRecords as Record<string, string>))
      dns.zone.set(`${name} TXT`, [value]);
    const host = spec.domainType === "previews" ? `*.${metadata.name}` : metadata.name;
    dns.zone.set(`${host} CNAME`, [spec.cnameRecords]);
  };
  const verify = async (name: string, as = {}) => (await call("POST", `/customdomains/${name}/verify`, as)).body.spec;
  const verified = async (path: string, name: string, as = {}) => {
    publish(await made(path, { metadata: { name }, spec: {} }, as));
    const { status, verificationError } = await verify(name, as);
    assert.equal(status, "verified", verificationError);
  };
  const get = (host: string, path = "/"): Promise<string> =>
    new Promise((resolve, reject) => {
      const headers = { host, authorization: `Bearer ${platform.apiKey}` };
      const asked = request(`${platform.url}${path}`, { headers, agent: false }, (answer) => {
        let text = "";
        answer.on("data", (chunk) => (text += chunk));
        answer.on("end", () => resolve(`${answer.statusCode} ${text}`));
      });
      asked.on("error", reject).end();
    });

  test("a host that nobody has below a verified domain leads nowhere, and never to the management API", async () => {
    await verified("/customdomains", "apps.example.com");
    for (const host of [
      "apps.example.com",
      "nobody.apps.example.com",
      "a.b.apps.example.com",
      "NOBODY.apps.example.com.",
      "nobody.apps.example.com..",
    ])
      for (const path of ["/", "/healthz", "/v0/workspaces", "/openapi.json", "/main/sandboxes/x", "/.well-known/x"])
        assert.match(await get(host, path), /^404 .*ROUTE_NOT_FOUND/, `${host}${path}`);
    assert.match(await get("api.example.com", "/healthz"), /^200/);
  });

  test("the platform's own host stays the platform's, also below a verified domain of a tenant", async () => {
    await verified("/customdomains", "example.com", other);
    assert.match(await get("api.example.com", "/healthz"), /^200/);
    assert.match(await get("nobody.example.com", "/healthz"), /^404 .*ROUTE_NOT_FOUND/);
  });

  test("an application's own domain leads to the application and is listed with it", async () => {
    await made("/applications", { metadata: { name: "shop" }, spec: { image: "service/py-app:latest" } });
    await verified("/applications/shop/customdomains", "shop.test.example");
    assert.match(await get("shop.test.example", "/v0/workspaces"), /^200 app at shop\.test\.example/);
    assert.match(await get("www.shop.test.example"), /^404 .*ROUTE_NOT_FOUND/);
    const listed = (await call("GET", "/applications/shop/customdomains")).body;
    assert.deepEqual(
      listed.map((one: { metadata: { name: string } }) => one.metadata.name),
      ["shop.test.example"],
    );
    assert.equal((await call("GET", "/applications/none/customdomains")).status, 404);
    assert.equal((await call("GET", "/applications/shop/customdomains", other)).status, 404);
    const refused = await call("DELETE", "/applications/shop");
    assert.match(JSON.stringify(refused.body), /shop\.test\.example/);
  });

  test("agents, functions and applications answer at the hosts that they claim", async () => {
    const image = "service/py-app:latest";
    for (const [kind, spec] of Object.entries({
      agents: { public: true, runtime: { image } },
      functions: { public: true, runtime: { image } },
      applications: { image },
    })) {
      const urls = [{ domain: "apps.example.com", subdomain: kind }];
      await made(`/${kind}`, { metadata: { name: "hosted" }, spec: { ...spec, urls } });
      assert.match(await get(`${kind}.apps.example.com`, "/v0/x"), /^200 app at/, kind);
      const twice = { metadata: { name: "second" }, spec: { ...spec, urls } };
      assert.equal((await call("POST", `/${kind}`, { body: twice })).status, 409);
    }
  });

  test("a domain of another tenant below one's own takes the names below it, and only with a proof", async () => {
    const claim = (subdomain: string) => ({
      metadata: { name: `claim-${subdomain.replaceAll(".", "-")}` },
      spec: { image: "service/py-app:latest", urls: [{ domain: "apps.example.com", subdomain }] },
    });
    await made("/applications", claim("old.team"));
    assert.match(await get("old.team.apps.example.com"), /^200 app/);
    await verified("/customdomains", "team.apps.example.com", other);
    assert.match(await get("old.team.apps.example.com"), /^404 .*ROUTE_NOT_FOUND/);
    assert.equal((await call("POST", "/applications", { body: claim("new.team") })).status, 400);
    assert.equal((await call("POST", "/applications", { body: claim("beside"), ...other })).status, 400);
  });

  test("a domain whose records have gone stops at once, and one that is deleted too", async () => {
    assert.match(await get("applications.apps.example.com"), /^200 app/);
    const proof = dns.zone.get("_service-verification.apps.example.com TXT") ?? [];
    dns.zone.delete("_service-verification.apps.example.com TXT");
    assert.equal((await verify("apps.example.com")).status, "failed");
    assert.match(await get("applications.apps.example.com"), /^404 .*ROUTE_NOT_FOUND/);
    dns.zone.set("_service-verification.apps.example.com TXT", proof);
    assert.equal((await verify("apps.example.com")).status, "verified");
    assert.match(await get("applications.apps.example.com"), /^200 app/);
    const { store } = platform.app;
    const later = { store, clock: { now: () => Date.now() + 2 * 3_600_000 }, settings: { dnsServers: [dns.address] } };
    const { signal } = new AbortController();
    dns.zone.delete("_service-verification.apps.example.com TXT");
    await recheckDomains(later, signal);
    assert.match(await get("applications.apps.example.com"), /^404 .*ROUTE_NOT_FOUND/);
    dns.zone.set("_service-verification.apps.example.com TXT", proof);
    await recheckDomains(later, signal);
    assert.match(await get("applications.apps.example.com"), /^200 app/);
    assert.equal((await call("DELETE", "/customdomains/shop.test.example")).status, 200);
    assert.doesNotMatch(await get("shop.test.example"), /app at/);
  });

  test("the address of a preview at a custom domain has the scheme and the port of the platform", async () => {
    await made("/sandboxes", { metadata: { name: "box" }, spec: {} });
    const spec = { port: 3000, public: true, customDomain: "apps.example.com", prefixUrl: "site" };
    const preview = await made("/sandboxes/box/previews", { metadata: { name: "site" }, spec });
    assert.equal(preview.spec.url, "http://site.apps.example.com");
    assert.match(await get("site.apps.example.com"), /^200 app at/);
  });
});
