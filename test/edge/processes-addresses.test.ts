/** Addresses that somebody claims, served in edge processes: previews, hosts of custom domains, paths of triggers. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, suite, test } from "node:test";
import { type DnsServer, startDnsServer } from "../dns-server.ts";
import { FakeMachine, fakeDriver } from "../fake-driver.ts";
import { makeUser } from "../identities.ts";
import { startTestPlatform, type TestPlatform } from "../platform.ts";
import { until } from "../triggers/agent-world.ts";

const DOMAIN = "apps.example.com";

suite("claimed addresses in edge processes", () => {
  const app = createServer((req, res) => {
    res.setHeader("x-seen", String(req.headers["x-fixed"] ?? "nothing"));
    res.end(`${req.method} ${req.url} at ${req.headers.host}`);
  });
  let appPort = 0;
  const machine = new FakeMachine({
    images: ["service/base-image:latest", "service/py-app:latest"],
    portOf: () => appPort,
  });
  for (const [name, image] of machine.images) machine.images.set(name, { ...image, argv: ["sleep", "infinity"] });
  let platform: TestPlatform;
  let dns: DnsServer;

  before(async () => {
    app.listen(0, "127.0.0.1");
    await once(app, "listening");
    appPort = (app.address() as AddressInfo).port;
    dns = await startDnsServer();
    const config = { edge_processes: "2", public_url: "http://api.example.com", dns_servers: dns.address };
    platform = await startTestPlatform({ driver: fakeDriver(machine), config });
    await made("/sandboxes", { metadata: { name: "box" }, spec: {} });
    await made("/customdomains", { metadata: { name: DOMAIN }, spec: {} }).then(({ spec }) => {
      for (const [name, value] of Object.entries(spec.txtRecords as Record<string, string>))
        dns.zone.set(`${name} TXT`, [value]);
      dns.zone.set(`*.${DOMAIN} CNAME`, [spec.cnameRecords]);
    });
    await made(`/customdomains/${DOMAIN}/verify`, {});
  });
  after(async () => {
    await platform?.stop();
    await dns?.stop();
    await machine.dispose();
    app.closeAllConnections();
    app.close();
  });

  const made = async (path: string, body: object, method = "POST") => {
    const answer = await platform.call(method, path, { body });
    assert.ok(answer.status < 300, `${path}: ${JSON.stringify(answer.body)}`);
    return answer.body;
  };
  const gone = async (path: string) => assert.ok((await platform.call("DELETE", path)).status < 300, path);
  const preview = (name: string, spec: object = {}, method = "POST") =>
    made(
      `/sandboxes/box/previews${method === "PUT" ? `/${name}` : ""}`,
      { metadata: { name }, spec: { port: 3000, ...spec } },
      method,
    );

  /** A request on a connection of its own, so that any process may get it. */
  const ask = (path: string, { host = "api.example.com", headers = {} }: Asking = {}): Promise<string> =>
    new Promise((resolve, reject) => {
      const options = { agent: false, headers: { host, ...headers } };
      const asked = request(`${platform.url}${path}`, options, (answer) => {
        let text = `${answer.statusCode} `;
        answer.on("data", (chunk) => (text += chunk));
        answer.on("end", () => resolve(text));
      });
      asked.on("error", reject).end();
    });
  const TIMES = 12;
  /** What every one of some answers begins with. */
  const everywhere = async (start: RegExp, path: string, options?: Asking): Promise<void> => {
    const answers = await Promise.all(Array.from({ length: TIMES }, () => ask(path, options)));
    for (const answer of answers) assert.match(answer, start, path);
  };
  let looks = 0;
  const counted = async (): Promise<{ requests: number; handedOn: number }> => {
    looks += 1;
    const headers = { authorization: `Bearer ${platform.apiKey}` };
    const text = await (await fetch(`${platform.url}/metrics`, { headers })).text();
    const sumOf = (name: string): number =>
      [...text.matchAll(new RegExp(`^${name}(?:\\{.*\\})? (\\d+)$`, "gm"))].reduce((sum, [, n]) => sum + Number(n), 0);
    return { requests: sumOf("berth_gateway_requests_total"), handedOn: sumOf("berth_gateway_handed_on_total") };
  };
  /** Edge processes serve all requests of `work`: nothing but the looks at the metrics is handed to the owner. */
  const servedAtEdge = async (work: () => Promise<void>): Promise<void> => {
    const before = await counted();
    looks = 0;
    await work();
    const now = await until("all are counted", async () => {
      const seen = await counted();
      return seen.requests >= before.requests + TIMES ? seen : null;
    });
    assert.ok(now.handedOn - before.handedOn <= looks + 1, `${now.handedOn} of ${before.handedOn}`);
  };

  test("a public preview, and its change and end are known when they are answered", async () => {
    await preview("web", { public: true, prefixUrl: "web", requestHeaders: { "X-Fixed": "by the preview" } });
    await servedAtEdge(() => everywhere(/^200 GET \/a\?b=c at/, "/main/previews/web-main/a?b=c"));
    const answer = await fetch(`${platform.url}/main/previews/web-main/a`);
    assert.equal(answer.headers.get("x-seen"), "by the preview");
    await preview("web", { public: false, prefixUrl: "web" }, "PUT");
    await everywhere(/^401 .*AUTHENTICATION_REQUIRED/, "/main/previews/web-main/a");
    await gone("/sandboxes/box/previews/web");
    await everywhere(/^404 .*ROUTE_NOT_FOUND/, "/main/previews/web-main/a");
  });

  test("a private preview opens for its tokens, and for none that was deleted", async () => {
    await preview("kept", { prefixUrl: "kept" });
    const tokens = "/sandboxes/box/previews/kept/tokens";
    const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
    const { metadata, spec } = await made(tokens, { metadata: { name: "t" }, spec: { expiresAt } });
    const open = { headers: { "x-service-preview-token": spec.token } };
    await servedAtEdge(() => everywhere(/^200 GET \/x at/, "/main/previews/kept-main/x", open));
    const wrong = { headers: { "x-service-preview-token": "nothing-of-the-kind" } };
    await everywhere(/^401 .*AUTHENTICATION_FAILED/, "/main/previews/kept-main/x", wrong);
    await gone(`${tokens}/${metadata.name}`);
    await everywhere(/^401 .*AUTHENTICATION_FAILED/, "/main/previews/kept-main/x", open);
  });

  test("a token ends with its maker's membership, and a preview when its sandbox is kept for some roles", async () => {
    const { store } = platform.app;
    await preview("mine", { prefixUrl: "mine" });
    const { key, sub } = await makeUser(store, null, "member", { main: "member" });
    const body = { metadata: { name: "t" }, spec: {} };
    const { status, body: token } = await platform.call("POST", "/sandboxes/box/previews/mine/tokens", { body, key });
    assert.equal(status, 200, JSON.stringify(token));
    const open = { headers: { "x-service-preview-token": token.spec.token } };
    await everywhere(/^200 /, "/main/previews/mine-main/x", open);
    await made(`/users/${sub}`, {}, "DELETE");
    await everywhere(/^401 .*AUTHENTICATION_FAILED/, "/main/previews/mine-main/x", open);

    await made("/sandboxes", { metadata: { name: "later" }, spec: {} });
    await made("/sandboxes/later/previews", {
      metadata: { name: "p" },
      spec: { port: 3000, public: true, prefixUrl: "later" },
    });
    await everywhere(/^200 /, "/main/previews/later-main/x");
    await made("/sandboxes/later", { metadata: { name: "later" }, spec: { access: { roles: ["admin"] } } }, "PUT");
    await everywhere(/^404 .*ROUTE_NOT_FOUND/, "/main/previews/later-main/x");
  });

  test("hosts below a custom domain lead where they are claimed, and nowhere else", async () => {
    await preview("site", { public: true, customDomain: `site.${DOMAIN}` });
    const host = `site.${DOMAIN}`;
    await servedAtEdge(() => everywhere(/^200 GET \/v0\/workspaces at site\./, "/v0/workspaces", { host }));
    await everywhere(/^404 .*ROUTE_NOT_FOUND/, "/v0/workspaces", { host: `nobody.${DOMAIN}` });
    await everywhere(/^404 .*ROUTE_NOT_FOUND/, "/main/sandboxes/box", { host: `nobody.${DOMAIN}` });
    // A host that is in no custom domain serves the path addresses.
    await everywhere(/^200 /, "/healthz", { host: "elsewhere.example.net" });
    await gone("/sandboxes/box/previews/site");
    await everywhere(/^404 .*ROUTE_NOT_FOUND/, "/", { host });
  });

  test("the path of a trigger leads to the agent with the longest claim", async () => {
    const agent = (name: string, path: string) =>
      made("/agents", {
        metadata: { name },
        spec: {
          runtime: { image: "service/py-app:latest" },
          triggers: [{ id: "hook", type: "http", configuration: { path, authenticationType: "public" } }],
        },
      });
    await agent("first", "hooks");
    // The first request starts the agent, which is the owner's work.
    assert.match(await ask("/main/hooks/in"), /^200 GET \/in at/);
    await servedAtEdge(() => everywhere(/^200 GET \/in\/a\?b at/, "/main/hooks/in/a?b"));
    await agent("second", "hooks/in");
    await everywhere(/^200 GET \/a\?b at/, "/main/hooks/in/a?b");
    await gone("/agents/second");
    await everywhere(/^200 GET \/in\/a\?b at/, "/main/hooks/in/a?b");
    await gone("/agents/first");
    await everywhere(/^404 .*ROUTE_NOT_FOUND/, "/main/hooks/in/a?b");
  });
});

interface Asking {
  host?: string;
  headers?: Record<string, string>;
}
