/** Certificates from an authority: asked for by the platform's records alone, renewed, and kept when a renewal fails. */
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { connect } from "node:tls";
import { AcmeClient, type AcmeSettings, type ChallengeType } from "../../src/acme/acme-client.ts";
import { type IssueDeps, issueCertificates } from "../../src/kinds/custom-domain/issue.ts";
import type { Settings } from "../../src/kinds/port.ts";
import type { CertificateRecord } from "../../src/store/certificates.ts";
import { type DnsServer, startDnsServer } from "../dns-server.ts";
import { freePort } from "../free-port.ts";
import { makeAccount, makeUser } from "../identities.ts";
import { caller, startTestPlatform, type TestPlatform } from "../platform.ts";
import { draftOf } from "../store.ts";
import { until } from "../triggers/agent-world.ts";
import { createPebble, type Pebble, pebbleProgram } from "./pebble.ts";

const program = pebbleProgram();

suite("certificates by ACME", {
  skip: program === null && "needs pebble: install it, or run where apt-get can download Debian's",
}, () => {
  let platform: TestPlatform;
  let pebble: Pebble;
  let dns: DnsServer;
  let port = 0;
  let httpPort = 0;

  before(async () => {
    dns = await startDnsServer();
    httpPort = await freePort();
    platform = await startTestPlatform({ config: { tls: "auto", http_port: String(httpPort) } });
    port = Number(new URL(platform.url).port);
    pebble = await createPebble(program ?? "", { httpPort, tlsPort: port, dns: dns.address });
    await pebble.start();
  });
  after(async () => {
    await pebble?.dispose();
    await platform?.stop();
    await dns?.stop();
  });

  // Plain HTTP on the port of HTTPS, which the server takes from its own machine.
  const call: TestPlatform["call"] = (...words) => caller(`http://127.0.0.1:${port}`)(...words);
  const acme = (challenge: ChallengeType, hook: string | null = null): AcmeSettings => ({
    ...{ directory: pebble.directory, email: "operator@example.com", challenge, hook },
    ca: readFileSync(pebble.caFile, "utf8"),
  });
  /** The task as a server runs it, at a time of the test's choosing. */
  const run = (settings: AcmeSettings, laterMs = 0, more: Partial<Settings> = {}): Promise<void> => {
    const { store } = platform.app;
    const own = { acme: settings, ownCertificate: true, publicUrl: "", domain: null, region: "local", ...more };
    const deps: IssueDeps = { store, clock: { now: () => Date.now() + laterMs }, settings: own as unknown as Settings };
    return issueCertificates(deps, new AbortController().signal);
  };
  const domain = (name: string, spec: object) =>
    platform.app.store.resources.create(
      draftOf("customdomain", name, { spec: { status: "verified", domainType: "applications", ...spec } }),
    );
  const pointHere = (name: string): void => void dns.zone.set(`${name} A`, ["127.0.0.1"]);
  const record = async (name: string): Promise<CertificateRecord> => {
    const found = await platform.app.store.certificates.get(name);
    assert.ok(found, `no record of ${name}`);
    return found;
  };
  const serial = async (name: string): Promise<string> => {
    const { chain, failure } = await record(name);
    assert.notEqual(chain, "", failure);
    return new X509Certificate(chain).serialNumber;
  };
  const served = (servername: string, host = "127.0.0.1"): Promise<string> =>
    new Promise((resolve, reject) => {
      const socket = connect({ port, host, servername, rejectUnauthorized: false });
      socket.on("error", reject);
      socket.on("secureConnect", () => {
        resolve(socket.getPeerCertificate().serialNumber);
        socket.destroy();
      });
    });
  /** The server hears of a new certificate a moment later. */
  const becomesServed = async (host: string, expected: string): Promise<void> => {
    await until(`${host} with ${expected}`, async () => (await served(host)) === expected);
  };
  const events = async (name: string): Promise<string> =>
    JSON.stringify((await call("GET", `/customdomains/${name}`)).body.events);

  test("a verified domain gets a certificate by HTTP, and no other name asks for one", async () => {
    pointHere("shop.acme.test");
    pointHere("pending.acme.test");
    await domain("shop.acme.test", {});
    await domain("pending.acme.test", { status: "pending" });
    await served("stranger.acme.test");
    await run(acme("http-01"));
    await becomesServed("shop.acme.test", await serial("shop.acme.test"));
    const names = (await platform.app.store.certificates.list()).map(({ name }) => name);
    assert.deepEqual(names, ["shop.acme.test"]);
    const listed = (await call("GET", "/customdomains/shop.acme.test/certificates")).body;
    assert.match(listed[0].issuer, /Pebble/);
    const { notBefore, notAfter, renewAt } = await record("shop.acme.test");
    const share = (renewAt - notBefore) / (notAfter - notBefore);
    assert.ok(share > 0.6 && share <= 2 / 3, String(share));
    const [before] = [await serial("shop.acme.test")];
    await run(acme("http-01"));
    assert.equal(await serial("shop.acme.test"), before, "nothing is due");
  });

  test("a certificate is renewed when two thirds of its life are over; the account stays", async () => {
    const [before, { renewAt }] = [await serial("shop.acme.test"), await record("shop.acme.test")];
    await run(acme("http-01"), renewAt - Date.now() + 60_000);
    assert.notEqual(await serial("shop.acme.test"), before);
    await becomesServed("shop.acme.test", await serial("shop.acme.test"));
    const accounts = await platform.app.store.database.read.selectFrom("acme_accounts").selectAll().execute();
    assert.equal(accounts.length, 1);
    assert.doesNotMatch(JSON.stringify(accounts), /PRIVATE KEY/);
  });

  test("names are proved in the TLS handshake, and by DNS for a wildcard", async (t) => {
    pointHere("alpn.acme.test");
    await domain("alpn.acme.test", {});
    await run(acme("tls-alpn-01"));
    await becomesServed("alpn.acme.test", await serial("alpn.acme.test"));

    // The test is the DNS provider, and the hook is its client.
    const written: string[] = [];
    const provider = createServer((req, res) => {
      const [word = "", name, value = ""] = new URL(req.url ?? "", "http://provider").pathname.slice(1).split("/");
      written.push(`${word} ${name}`);
      if (word === "set") dns.zone.set(`${name} TXT`, [value]);
      res.end();
    }).listen(0, "127.0.0.1");
    t.after(() => provider.close());
    await once(provider, "listening");
    const address = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`;
    const [script, hook] = [join(platform.dataDir, "hook.mjs"), join(platform.dataDir, "hook")];
    writeFileSync(script, `await fetch([${JSON.stringify(address)}, ...process.argv.slice(2)].join("/"));`);
    writeFileSync(hook, `#!/bin/sh\nexec '${process.execPath}' '${script}' "$@"\n`, { mode: 0o755 });
    const { resource } = await domain("apps.acme.test", { domainType: "previews" });
    // Left by another challenge: it would come before the wildcard in handshakes, and nobody renews it.
    const left = { ...(await record("alpn.acme.test")), ...{ domainUid: resource.uid, key: "" } };
    await platform.app.store.certificates.put(["old.apps.acme.test"], left);
    await run(acme("dns-01", hook));
    assert.equal(await platform.app.store.certificates.get("old.apps.acme.test"), null);
    await becomesServed("any.apps.acme.test", await serial("*.apps.acme.test"));
    assert.deepEqual(
      [...new Set(written)],
      ["set _acme-challenge.apps.acme.test", "unset _acme-challenge.apps.acme.test"],
    );
    // The platform's own names: one certificate for the domain and all hosts of workloads and previews.
    const host = "berth.acme.test";
    await run(acme("dns-01", hook), 0, { ownCertificate: false, publicUrl: `https://${host}`, domain: host });
    for (const name of [host, `sbx-a-main.local.${host}`, `p.preview.${host}`, `bucket.s3.${host}`])
      await becomesServed(name, await serial(host));
  });

  test("a name that does not lead here is refused with the reason, and asked for again later", async () => {
    dns.zone.set("wrong.acme.test A", ["127.0.0.2"]);
    await domain("wrong.acme.test", {});
    await run(acme("http-01"));
    const { chain, failure, retryAt } = await record("wrong.acme.test");
    assert.equal(chain, "");
    assert.match(failure, /could not check wrong\.acme\.test \(http-01\)/);
    assert.match(await events("wrong.acme.test"), /certificate-failed/);
    await run(acme("http-01"));
    assert.equal((await record("wrong.acme.test")).failures, 1, "not before its time");
    pointHere("wrong.acme.test");
    await run(acme("http-01"), retryAt - Date.now() + 1000);
    assert.equal((await record("wrong.acme.test")).failure, "");
    await becomesServed("wrong.acme.test", await serial("wrong.acme.test"));
  });

  test("a certificate is revoked by the account that got it", async () => {
    const { chain } = await record("wrong.acme.test");
    const client = new AcmeClient(acme("http-01"));
    client.use(await platform.app.store.certificates.account(pebble.directory, () => assert.fail("a second account")));
    await client.revoke(chain).finally(() => client.close());
    assert.equal(await pebble.statusOf(await serial("wrong.acme.test")), "Revoked");
  });

  test("the platform's own certificate is revoked by its operator alone, and replaced", async () => {
    // Another server, at the other address of this machine that the authority reaches on the same ports.
    const host = "127.0.0.2";
    dns.zone.set("own.acme.test A", [host]);
    await using own = await startTestPlatform({
      config: {
        ...{ host, port: String(port), http_port: String(httpPort), tls: "auto", public_url: "https://own.acme.test" },
        ...{ acme_directory: pebble.directory, acme_ca: pebble.caFile, dns_servers: dns.address },
      },
    });
    const ask: TestPlatform["call"] = (...words) => caller(`http://${host}:${port}`)(...words);
    const next = (before: string): Promise<string> =>
      until("a certificate of the authority", async () => {
        const found = await own.app.store.certificates.get("own.acme.test");
        const serial = found?.chain ? new X509Certificate(found.chain).serialNumber : before;
        return serial !== before && (await served("own.acme.test", host)) === serial ? serial : null;
      });
    const before = await next("");
    const { id } = await makeAccount(own.app.store, "other");
    const stranger = { key: (await makeUser(own.app.store, id, "admin")).key };
    for (const [method, path] of [["GET", "/certificates"] as const, ["POST", "/certificates/revoke"] as const])
      assert.equal((await ask(method, path, stranger)).status, 403, path);
    assert.equal(await pebble.statusOf(before), "Valid");
    const { status, body } = await ask("POST", "/certificates/revoke", { body: { reason: "keyCompromise" } });
    assert.deepEqual([status, body[0].name, typeof body[0].revokedAt], [200, "own.acme.test", "string"]);
    assert.equal(await pebble.statusOf(before), "Revoked");
    assert.equal(await pebble.statusOf(await next(before)), "Valid");
    assert.equal((await ask("GET", "/certificates")).body[0].revokedAt, undefined);
    const { accountId } = (await ask("GET", "/workspaces/main")).body;
    assert.match(JSON.stringify((await ask("GET", `/accounts/${accountId}/audit`)).body), /certificateRevoke/);
  });

  test("while the authority is away, the last good certificate is served and the reason is told", async () => {
    const [before, { renewAt }] = [await serial("shop.acme.test"), await record("shop.acme.test")];
    const settings = acme("http-01");
    await pebble.stop();
    await run(settings, renewAt - Date.now() + 60_000);
    const { failure } = await record("shop.acme.test");
    assert.match(failure, /does not answer/);
    assert.equal(await serial("shop.acme.test"), before);
    await becomesServed("shop.acme.test", before);
    const listed = (await call("GET", "/customdomains/shop.acme.test/certificates")).body;
    assert.match(listed[0].failure, /does not answer/);
  });
});
