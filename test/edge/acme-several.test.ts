/** Two servers on one PostgreSQL and one certificate authority: each name is asked for once, and revoked by the API. */
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { after, before, suite, test } from "node:test";
import { connect } from "node:tls";
import { solverFor } from "../../src/kinds/custom-domain/challenges.ts";
import { REVOCATIONS_MAX } from "../../src/kinds/custom-domain/revocation.ts";
import { testDatabases } from "../databases.ts";
import { type DnsServer, startDnsServer } from "../dns-server.ts";
import { freePort } from "../free-port.ts";
import { makeAccount, makeUser } from "../identities.ts";
import { caller, startTestPlatform, type TestPlatform } from "../platform.ts";
import { until } from "../triggers/agent-world.ts";
import { createPebble, type Pebble, pebbleProgram } from "./pebble.ts";

const program = pebbleProgram();
const databases = await testDatabases();
after(() => databases.stop());
const postgres = databases.all.find(({ name }) => name === "postgres") ?? assert.fail();
const skip = program === null ? "needs pebble: install it, or run where apt-get can download Debian's" : postgres.skip;

interface Server {
  platform: TestPlatform;
  port: number;
  httpPort: number;
  call: TestPlatform["call"];
}

suite("certificates of two servers", { skip }, () => {
  const servers: Server[] = [];
  let pebble: Pebble;
  let dns: DnsServer;

  before(async () => {
    dns = await startDnsServer();
    const { databaseUrl } = await postgres.migrated();
    const ports = [];
    for (let at = 0; at < 2; at += 1) ports.push({ port: await freePort(), httpPort: await freePort() });
    const [, { port: tlsPort, httpPort } = assert.fail()] = ports;
    // The authority reaches the second server only, whichever server asks.
    pebble = await createPebble(program ?? "", { httpPort, tlsPort, dns: dns.address });
    await pebble.start();
    for (const { port, httpPort } of ports) {
      const config = {
        ...{ secret_key: "one key for all servers of one database", dns_servers: dns.address },
        ...{ tls: "auto", port: String(port), http_port: String(httpPort) },
        ...{ acme_directory: pebble.directory, acme_ca: pebble.caFile },
      };
      const platform = await startTestPlatform({ databaseUrl, config });
      // Plain HTTP on the port of HTTPS, which the server takes from its own machine.
      servers.push({ platform, port, httpPort, call: caller(`http://127.0.0.1:${port}`) });
    }
  });
  after(async () => {
    for (const { platform } of servers) await platform.stop();
    await pebble?.dispose();
    await dns?.stop();
  });

  const [one, two] = [() => servers[0] ?? assert.fail(), () => servers[1] ?? assert.fail()];
  const store = () => one().platform.app.store;
  const verified = async (name: string, address: string): Promise<void> => {
    const { body } = await one().call("POST", "/customdomains", {
      body: { metadata: { name }, spec: { domainType: "applications" } },
    });
    for (const [record, value] of Object.entries(body.spec.txtRecords as Record<string, string>))
      dns.zone.set(`${record} TXT`, [value]);
    dns.zone.set(`${name} A`, [address]);
    assert.equal((await two().call("POST", `/customdomains/${name}/verify`)).body.spec.status, "verified");
  };
  const handshake = ({ port }: Server, servername: string, protocol = "http/1.1"): Promise<X509Certificate> =>
    new Promise((resolve, reject) => {
      const options = { port, host: "127.0.0.1", servername, rejectUnauthorized: false, ALPNProtocols: [protocol] };
      const socket = connect(options, () => {
        resolve(new X509Certificate(socket.getPeerCertificate().raw));
        socket.destroy();
      });
      socket.on("error", reject);
    });
  const served = async (server: Server, name: string): Promise<string | null> => {
    const { issuer, serialNumber } = await handshake(server, name);
    return /Pebble/.test(issuer) ? serialNumber : null;
  };
  /** The serial number of the certificate that both servers serve, other than `before`. */
  const servedByBoth = (name: string, before: string | null = null): Promise<string> =>
    until(`a certificate of ${name}`, async () => {
      const [first, second] = await Promise.all(servers.map((server) => served(server, name)));
      return first !== before && first === second ? (first ?? null) : null;
    });
  const eventsOf = async (name: string): Promise<{ type: string; message: string }[]> =>
    (await two().call<{ events: { type: string; message: string }[] }>("GET", `/customdomains/${name}`)).body.events;
  const count = async (name: string, type: string): Promise<number> =>
    (await eventsOf(name)).filter((event) => event.type === type).length;
  const revoke = (name: string, body: object, options = {}) =>
    two().call("POST", `/customdomains/${name}/certificates/revoke`, { body, ...options });

  test("either server answers the authority, by HTTP and in the TLS handshake", async () => {
    const settings = { directory: pebble.directory, email: null, ca: null, hook: null };
    const deps = { store: store(), clock: { now: Date.now } };
    const challenge = { host: "any.several.test", token: "token-of-one", keyAuthorization: "token-of-one.key" };
    const withdraw = [
      await solverFor({ ...settings, challenge: "http-01" }, deps)(challenge),
      await solverFor({ ...settings, challenge: "tls-alpn-01" }, deps)(challenge),
    ];
    for (const server of servers) {
      const url = `http://127.0.0.1:${server.httpPort}/.well-known/acme-challenge/token-of-one`;
      assert.equal(await (await fetch(url)).text(), "token-of-one.key");
      const { subjectAltName } = await handshake(server, "any.several.test", "acme-tls/1");
      assert.equal(subjectAltName, "DNS:any.several.test");
    }
    for (const done of withdraw) await done();
  });

  test("a verified domain gets one certificate, which both servers serve", async () => {
    await verified("shop.several.test", "127.0.0.1");
    const serial = await servedByBoth("shop.several.test");
    assert.equal(await pebble.statusOf(serial), "Valid");
    assert.equal(pebble.issued(), 1);
    assert.equal(await count("shop.several.test", "certificate-issued"), 1);
  });

  test("a revocation needs an admin of the domain's workspace and a certificate of the authority", async () => {
    const { id } = await makeAccount(store(), "other");
    const stranger = { key: (await makeUser(store(), id, "admin")).key, workspace: "other" };
    assert.equal((await revoke("shop.several.test", {}, stranger)).status, 404);
    const main = (await two().call("GET", "/workspaces/main")).body;
    const member = await makeUser(store(), main.accountId ?? "", "member");
    assert.equal((await revoke("shop.several.test", {}, { key: member.key, workspace: "main" })).status, 403);
    assert.equal((await revoke("shop.several.test", { name: "none.several.test" })).status, 404);
    assert.equal((await revoke("shop.several.test", { reason: "certificateHold" })).status, 400);
    assert.equal(await pebble.statusOf((await served(one(), "shop.several.test")) ?? ""), "Valid");
  });

  test("a revoked certificate is replaced by one new certificate, whose key is another", async () => {
    const before = await servedByBoth("shop.several.test");
    const { status, body } = await revoke("shop.several.test", { reason: "keyCompromise" });
    assert.equal(status, 200, JSON.stringify(body));
    assert.ok(body[0].revokedAt);
    assert.equal(await pebble.statusOf(before), "Revoked");
    const next = await servedByBoth("shop.several.test", before);
    assert.equal(await pebble.statusOf(next), "Valid");
    assert.equal(pebble.issued(), 2);
    assert.match(JSON.stringify(await eventsOf("shop.several.test")), /certificate-revoked.*keyCompromise/);
    const listed = (await one().call("GET", "/customdomains/shop.several.test/certificates")).body;
    assert.equal(listed[0].revokedAt, undefined);
  });

  test("a due renewal happens once; a name that does not lead here tells why", async () => {
    const before = await servedByBoth("shop.several.test");
    await store().database.write(({ queries }) =>
      queries.updateTable("certificates").set({ renew_at: 1 }).where("name", "=", "shop.several.test").execute(),
    );
    await verified("wrong.several.test", "127.0.0.2");
    await verified("late.several.test", "127.0.0.1");
    await servedByBoth("shop.several.test", before);
    await servedByBoth("late.several.test");
    await until("a failure", async () => (await count("wrong.several.test", "certificate-failed")) > 0);
    const told = JSON.stringify(await eventsOf("wrong.several.test"));
    assert.match(told, /could not check wrong\.several\.test \(http-01\)/);
    assert.equal(pebble.issued(), 4);
    assert.equal(await count("shop.several.test", "certificate-issued"), 3);
  });

  test("a certificate that is revoked without a new order is no longer served", async () => {
    const serial = await servedByBoth("shop.several.test");
    const { status, body } = await revoke("shop.several.test", { reissue: false, reason: "cessationOfOperation" });
    assert.equal(status, 200, JSON.stringify(body));
    assert.deepEqual([typeof body[0].revokedAt, body[0].renewsAt], ["string", undefined]);
    assert.equal(await pebble.statusOf(serial), "Revoked");
    await until("the end of the certificate", async () => {
      const found = await Promise.all(servers.map((server) => served(server, "shop.several.test")));
      return found.every((one) => one === null);
    });
  });

  test("while the authority is away nothing is revoked, and the certificate is served on", async () => {
    const serial = await servedByBoth("late.several.test");
    await pebble.stop();
    const { status, body } = await revoke("late.several.test", {});
    assert.deepEqual([status, /was not revoked.*does not answer/.test(body.message)], [502, true], body.message);
    assert.equal(await servedByBoth("late.several.test"), serial);
    const listed = (await one().call("GET", "/customdomains/late.several.test/certificates")).body;
    assert.equal(listed[0].revokedAt, undefined);
  });

  test("a workspace may revoke so many times a day, and no more", async () => {
    const answers = [];
    for (let at = 0; at <= REVOCATIONS_MAX; at += 1)
      answers.push(await revoke("shop.several.test", { reissue: false }));
    assert.equal(answers.at(0)?.status, 200);
    assert.equal(answers.at(-1)?.status, 429);
    assert.ok(Number(answers.at(-1)?.headers.get("retry-after")) > 3600);
  });
});
