/** Somebody else's domain, and somebody else's image: neither is had by a name, a leftover record or an old permission. */
import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { request } from "undici";
import { CertificateSigner, makeAuthority } from "../../src/lib/x509/certificate.ts";
import { type DnsServer, startDnsServer } from "../dns-server.ts";
import { makeAccount, makeServiceAccount, makeUser } from "../identities.ts";
import { startTestPlatform, type TestPlatform } from "../platform.ts";

suite("domains and images of others", () => {
  let platform: TestPlatform;
  let dns: DnsServer;
  let thief: { key: string; workspace: string };

  before(async () => {
    dns = await startDnsServer();
    platform = await startTestPlatform({
      config: {
        domain: "edge.example",
        public_url: "http://api.example.net",
        console_url: "http://console.example.net",
        dns_servers: dns.address,
      },
    });
    const { id } = await makeAccount(platform.app.store, "thief");
    thief = { key: (await makeUser(platform.app.store, id, "admin")).key, workspace: "thief" };
  });
  after(async () => {
    await platform.stop();
    await dns.stop();
  });

  const claim = (name: string, as = {}) =>
    platform.call("POST", "/customdomains", { body: { metadata: { name }, spec: {} }, ...as });
  const verify = async (name: string, as = {}): Promise<string> =>
    (await platform.call("POST", `/customdomains/${name}/verify`, as)).body.spec?.status ?? "refused";
  const publish = ({ body }: Awaited<ReturnType<typeof claim>>): void => {
    for (const [name, value] of Object.entries(body.spec.txtRecords as Record<string, string>))
      dns.zone.set(`${name} TXT`, [value]);
    dns.zone.set(`*.${body.metadata.name} CNAME`, [body.spec.cnameRecords]);
  };
  const visit = async (host: string): Promise<string> => {
    const answer = await request(`${platform.url}/x`, { headers: { host } });
    return `${answer.statusCode} ${await answer.body.text()}`;
  };

  test("records that a former owner left behind verify the domain for nobody else", async () => {
    publish(await claim("left.example.com"));
    assert.equal(await verify("left.example.com"), "verified");
    assert.equal((await platform.call("DELETE", "/customdomains/left.example.com")).status, 200);
    assert.equal((await claim("left.example.com", thief)).status, 200);
    assert.equal(await verify("left.example.com", thief), "failed");
    // The former owner comes back with the same proof.
    await claim("left.example.com");
    assert.equal(await verify("left.example.com"), "verified");
    assert.equal(await verify("left.example.com", thief), "failed");
    assert.equal((await platform.call("GET", "/customdomains/left.example.com")).body.spec.status, "verified");
  });

  test("a domain below another's needs a proof of its own, and a wildcard record is none", async () => {
    assert.equal((await claim("shop.left.example.com", thief)).status, 200);
    assert.equal(await verify("shop.left.example.com", thief), "failed");
    const box = { metadata: { name: "box" }, spec: {} };
    assert.equal((await platform.call("POST", "/sandboxes", { ...thief, body: box })).status, 200);
    for (const customDomain of ["left.example.com", "shop.left.example.com", "LEFT.example.com", "left.example.com."]) {
      const body = { metadata: { name: "p" }, spec: { port: 443, public: true, customDomain, prefixUrl: "www" } };
      const made = await platform.call("POST", "/sandboxes/box/previews", { ...thief, body });
      assert.equal(made.status, 400, `${customDomain}: ${JSON.stringify(made.body)}`);
    }
  });

  test("a domain above the platform's names takes none of them: no domain, no host and no certificate", async () => {
    const preview = (prefixUrl: string) => {
      const body = { metadata: { name: prefixUrl }, spec: { port: 443, customDomain: "example.net", prefixUrl } };
      return platform.call("POST", "/sandboxes/above/previews", { ...thief, body });
    };
    const body = { metadata: { name: "above" }, spec: {} };
    assert.equal((await platform.call("POST", "/sandboxes", { ...thief, body })).status, 200);
    publish(await claim("example.net", thief));
    assert.equal(await verify("example.net", thief), "verified");
    const [fromMs, untilMs] = [Date.now() - 60_000, Date.now() + 86_400_000];
    const signer = new CertificateSigner(makeAuthority("Thief", { fromMs, untilMs }), "Thief");
    const upload = async (name: string) => {
      const { certificate, key: privateKey } = signer.hostCertificate(name, { fromMs, untilMs });
      const options = { ...thief, body: { certificate, privateKey } };
      return (await platform.call("PUT", "/customdomains/example.net/certificates", options)).status;
    };
    assert.deepEqual([await upload("shop.example.net"), (await preview("shop")).status], [200, 200]);
    for (const label of ["api", "console"]) {
      assert.equal((await claim(`${label}.example.net`, thief)).status, 400);
      const { status, body } = await preview(label);
      assert.deepEqual([status, /belongs to the platform/.test(JSON.stringify(body))], [400, true]);
      assert.equal(await upload(`${label}.example.net`), 400);
    }
  });

  test("a prefix below one's own domain is no name of a domain that is another's", async () => {
    const customDomain = "left.example.com";
    publish(await claim("team.left.example.com", thief));
    assert.equal(await verify("team.left.example.com", thief), "verified");
    const box = { metadata: { name: "owner" }, spec: {} };
    assert.equal((await platform.call("POST", "/sandboxes", { body: box })).status, 200);
    const preview = async (prefixUrl: string) => {
      const body = { metadata: { name: prefixUrl }, spec: { port: 443, customDomain, prefixUrl } };
      return (await platform.call("POST", "/sandboxes/owner/previews", { body })).status;
    };
    assert.deepEqual([await preview("team"), await preview("other")], [400, 200]);
  });

  test("other spellings of a domain are no second domain", async () => {
    const spellings = ["LEFT.example.com", "left.example.com.", "*.left.example.com", "left.example.com:80"];
    for (const name of [
      ...spellings,
      " left.example.com",
      "left\u3002example.com",
      "léft.example.com",
      "left..example.com",
    ])
      assert.equal((await claim(name, thief)).status, 400, name);
  });

  test("a host leads to its owner in every spelling, and to nobody when its domain is not verified", async () => {
    const made = await platform.call("POST", "/sandboxes", { body: { metadata: { name: "own" }, spec: {} } });
    const spec = { port: 443, public: true, customDomain: "left.example.com", prefixUrl: "www" };
    const preview = { metadata: { name: "p" }, spec };
    const shown = await platform.call("POST", "/sandboxes/own/previews", { body: preview });
    assert.equal(shown.status, 200, JSON.stringify(shown.body));
    for (const host of [
      "www.left.example.com",
      "WWW.left.EXAMPLE.com",
      "www.left.example.com.",
      "www.left.example.com:8443",
    ])
      assert.ok((await visit(host)).includes(made.body.metadata.uid), host);
    assert.match(await visit("www.shop.left.example.com"), /^404 /);
  });

  test("an offer of an image says nothing of whether its target exists, nor whose it is", async () => {
    const image = { name: "probe", resourceType: "sandbox", image: "registry.example/probe:1" };
    assert.ok((await platform.call("POST", "/images", { body: image })).status < 300);
    const { accountId } = (await platform.call("GET", "/workspaces", thief)).body[0];
    const share = "/images/sandbox/probe/share";
    const probe = async (targetWorkspace: string, targetAccountId?: string): Promise<unknown> => {
      const offered = await platform.call("POST", share, { body: { targetWorkspace, targetAccountId } });
      const again = await platform.call("POST", share, { body: { targetWorkspace, targetAccountId } });
      const listed = await platform.call("GET", share);
      const outgoing = await platform.call("GET", "/pending-image-shares?direction=outgoing");
      const removed = await platform.call("DELETE", `${share}/${targetWorkspace}`);
      const { id, createdAt, updatedAt, expiresAt, ...shown } = offered.body;
      const seen = [listed.body.length, outgoing.body.length, listed.body[0]?.accountId, listed.body[0]?.status];
      const text = JSON.stringify([offered.status, shown, again.status, again.body.error, removed.status, ...seen]);
      return text.replaceAll(targetWorkspace, "TARGET");
    };
    const nowhere = await probe("no-such-place");
    assert.match(String(nowhere), /^\[202,/);
    assert.equal(await probe("thief"), nowhere);
    assert.doesNotMatch(String(nowhere), new RegExp(accountId));
    // Whoever knows the account learns nothing of its workspaces.
    assert.equal(await probe("no-such-place", accountId), await probe("thief", accountId));
    // And an offer that names another account reaches nobody.
    await platform.call("POST", share, { body: { targetWorkspace: "thief", targetAccountId: "another" } });
    assert.deepEqual((await platform.call("GET", "/pending-image-shares", thief)).body, []);
    assert.equal((await platform.call("DELETE", `${share}/thief`)).status, 200);
  });

  test("names of workspaces are told to those who may make one, and to nobody else", async () => {
    const stranger = await makeUser(platform.app.store, null, "member");
    const robot = await makeServiceAccount(platform.app.store, "thief");
    const ask = (name: string, key?: string) =>
      platform.call("POST", "/workspaces/availability", { body: { name }, ...(key ? { key } : {}) });
    assert.deepEqual([(await ask("thief")).body, (await ask("no-such-place")).body], [false, true]);
    for (const { key } of [stranger, robot])
      for (const name of ["thief", "no-such-place", "v1"]) {
        const { status, body } = await ask(name, key);
        assert.deepEqual([status, body.error], [403, "forbidden"], name);
      }
  });

  test("an image that was shared is gone with the share, and a withdrawn offer cannot be taken", async () => {
    const image = { name: "tool", resourceType: "sandbox", image: "registry.example/tool:1" };
    assert.ok((await platform.call("POST", "/images", { body: image })).status < 300);
    const share = () => platform.call("POST", "/images/sandbox/tool/share", { body: { targetWorkspace: "thief" } });
    const seen = async (): Promise<number> => (await platform.call("GET", "/images/sandbox/tool", thief)).status;
    const accept = async (id: string, as = {}): Promise<number> =>
      (await platform.call("POST", `/pending-image-shares/${id}/accept`, as)).status;
    const first = await share();
    assert.equal(first.status, 202, JSON.stringify(first.body));
    assert.equal(await seen(), 404, "an offer shows nothing");
    assert.equal(await accept(first.body.id), 404, "nor does its sender take it");
    assert.equal((await platform.call("DELETE", "/images/sandbox/tool/share/thief")).status, 200);
    assert.ok([404, 410].includes(await accept(first.body.id, thief)), "it was withdrawn");
    const second = await share();
    assert.equal(await accept(second.body.id, thief), 200);
    assert.equal(await seen(), 200);
    const again = { ...thief, body: { targetWorkspace: "main" } };
    assert.ok((await platform.call("POST", "/images/sandbox/tool/share", again)).status >= 400, "passed on");
    assert.equal((await platform.call("DELETE", "/images/sandbox/tool/share/thief")).status, 200);
    assert.equal(await seen(), 404);
    assert.ok([404, 410].includes(await accept(second.body.id, thief)));
    assert.equal((await platform.call("GET", "/images/sandbox/tool")).status, 200, "the owner has it still");
  });
});
