import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Store } from "../../src/store/store.ts";
import { testDatabases } from "../databases.ts";
import { type DnsServer, startDnsServer } from "../dns-server.ts";
import { type Identity, makeAccount, makeUser } from "../identities.ts";
import { startTestPlatform, type TestPlatform } from "../platform.ts";
import { draftOf } from "../store.ts";

const databases = await testDatabases();
after(() => databases.stop());

for (const database of databases.aboveStore) {
  describe(`custom domains on ${database.name}`, { skip: database.skip }, () => {
    let platform: TestPlatform;
    let dns: DnsServer;
    let store: Store;
    let owner: Identity;
    const call: TestPlatform["call"] = (method, path, options = {}) =>
      platform.call(method, path, { workspace: "main", ...options });
    const there = () => ({ key: owner.key, workspace: "elsewhere" });
    const create = (name: string, spec: object = {}, options = {}) =>
      call("POST", "/customdomains", { body: { metadata: { name }, spec }, ...options });
    const publish = ({ body }: Awaited<ReturnType<typeof create>>) => {
      for (const [name, value] of Object.entries(body.spec.txtRecords as Record<string, string>))
        dns.zone.set(`${name} TXT`, [...(dns.zone.get(`${name} TXT`) ?? []), value]);
      const host = body.spec.domainType === "previews" ? `*.${body.metadata.name}` : body.metadata.name;
      dns.zone.set(`${host} CNAME`, [body.spec.cnameRecords]);
    };
    const verified = async (name: string, spec: object = {}) => {
      publish(await create(name, spec));
      const { body } = await call("POST", `/customdomains/${name}/verify`);
      assert.equal(body.spec.status, "verified", body.spec.verificationError);
    };

    before(async () => {
      dns = await startDnsServer();
      platform = await startTestPlatform({
        ...(await database.migrated()),
        config: { domain: "edge.example", dns_servers: dns.address },
      });
      store = platform.app.store;
      const other = await makeAccount(store, "elsewhere");
      owner = await makeUser(store, other.id, "admin", { elsewhere: "admin" });
    });
    after(async () => {
      await platform.stop();
      await dns.stop();
    });

    test("a new domain tells which records to publish, and only DNS verifies it", async () => {
      const made = await create("apps.example.com", { status: "verified", txtRecords: { x: "y" }, cnameRecords: "me" });
      assert.equal(made.status, 200, JSON.stringify(made.body));
      const { spec } = made.body;
      assert.equal(spec.status, "pending");
      assert.equal(spec.domainType, "previews");
      assert.equal(spec.cnameRecords, "edge.example");
      assert.deepEqual(Object.keys(spec.txtRecords), ["_service-verification.apps.example.com"]);

      const absent = await call("POST", "/customdomains/apps.example.com/verify");
      assert.equal(absent.status, 200);
      assert.equal(absent.body.spec.status, "failed");
      assert.match(absent.body.spec.verificationError, /no TXT record at _service-verification/);

      dns.zone.set("_service-verification.apps.example.com TXT", ["something else"]);
      assert.match(
        (await call("POST", "/customdomains/apps.example.com/verify")).body.spec.verificationError,
        /another one/,
      );
      publish(made);
      dns.zone.set("*.apps.example.com CNAME", ["wrong.example"]);
      assert.match((await call("POST", "/customdomains/apps.example.com/verify")).body.spec.verificationError, /CNAME/);
      dns.zone.set("*.apps.example.com CNAME", ["EDGE.example"]);
      const done = await call("POST", "/customdomains/apps.example.com/verify");
      assert.equal(done.body.spec.status, "verified");
      assert.equal(done.body.spec.verificationError, undefined);
      assert.ok(Date.parse(done.body.spec.lastVerifiedAt) > 0);

      const changed = await call("PUT", "/customdomains/apps.example.com", {
        body: { metadata: { name: "apps.example.com" }, spec: { fallbackPreviewId: "p", status: "failed" } },
      });
      assert.equal(changed.body.spec.status, "verified", "what the platform decides stays");
      assert.equal(changed.body.spec.fallbackPreviewId, "p");
      const other = await call("PUT", "/customdomains/apps.example.com", {
        body: { metadata: { name: "apps.example.com" }, spec: { domainType: "applications" } },
      });
      assert.equal(other.body.error, "immutable_field");
    });

    test("a silent DNS server takes nothing away", async () => {
      await verified("steady.example.com");
      dns.refusing = true;
      const { body } = await call("POST", "/customdomains/steady.example.com/verify");
      dns.refusing = false;
      assert.equal(body.spec.status, "verified");
      assert.match(body.spec.verificationError, /did not answer/);
    });

    test("a domain without room for a CNAME may answer with the same addresses", async () => {
      const made = await create("apex.example", { domainType: "applications" });
      publish(made);
      dns.zone.delete("apex.example CNAME");
      dns.zone.set("apex.example A", ["192.0.2.9"]);
      assert.equal((await call("POST", "/customdomains/apex.example/verify")).body.spec.status, "failed");
      dns.zone.set("edge.example A", ["192.0.2.9", "192.0.2.10"]);
      assert.equal((await call("POST", "/customdomains/apex.example/verify")).body.spec.status, "verified");
    });

    test("names are domain names, and not the platform's own", async () => {
      for (const name of ["nodots", "UPPER.example.com", "*.example.com", "1.2.3.4", "a..b.com", "-a.example.com"])
        assert.equal((await create(name)).status, 400, name);
      for (const name of ["edge.example", "x.edge.example"])
        assert.match((await create(name)).body.message, /belong to the platform/);
      assert.equal((await create("apps.example.com")).status, 409);
    });

    test("a domain is verified for one workspace, and goes to the next owner when the records have gone", async () => {
      await verified("moving.example.com");
      const theirs = await create("moving.example.com", {}, there());
      publish(theirs);
      const refused = await call("POST", "/customdomains/moving.example.com/verify", there());
      assert.equal(refused.status, 409);
      dns.zone.set("_service-verification.moving.example.com TXT", Object.values(theirs.body.spec.txtRecords));
      const taken = await call("POST", "/customdomains/moving.example.com/verify", there());
      assert.equal(taken.body.spec.status, "verified", JSON.stringify(taken.body));
      assert.equal((await call("GET", "/customdomains/moving.example.com")).body.spec.status, "failed");
      await call("DELETE", "/customdomains/moving.example.com", there());
    });

    test("a former owner serves nothing below a domain that has gone to another", async () => {
      await verified("sold.example.com");
      const sandbox = { metadata: { name: "seller" }, spec: {} };
      assert.equal((await call("POST", "/sandboxes", { body: sandbox })).status, 200);
      const body = {
        metadata: { name: "shop" },
        spec: { port: 1, customDomain: "sold.example.com", prefixUrl: "shop" },
      };
      assert.equal((await call("POST", "/sandboxes/seller/previews", { body })).status, 200);
      const theirs = await create("sold.example.com", {}, there());
      dns.zone.set("_service-verification.sold.example.com TXT", Object.values(theirs.body.spec.txtRecords));
      const taken = await call("POST", "/customdomains/sold.example.com/verify", there());
      assert.equal(taken.body.spec.status, "verified", JSON.stringify(taken.body));
      assert.equal(await store.claims.holderOf("host", "shop.sold.example.com"), null);
      assert.equal((await call("POST", "/sandboxes", { body: sandbox, ...there() })).status, 200);
      const heir = await call("POST", "/sandboxes/seller/previews", { body, ...there() });
      assert.equal(heir.status, 200, JSON.stringify(heir.body));
      await call("DELETE", "/sandboxes/seller/previews/shop", there());
      await call("DELETE", "/sandboxes/seller", there());
      assert.equal((await call("DELETE", "/customdomains/sold.example.com", there())).status, 200);
    });

    test("a verified domain for previews is lent to workspaces of the account", async () => {
      for (const name of ["borrower", "bystander"]) await call("POST", "/workspaces", { body: { name } });
      await create("lent.example.com");
      const share = (targetWorkspace: string) =>
        call("POST", "/customdomains/lent.example.com/share", { body: { targetWorkspace } });
      assert.equal((await share("borrower")).status, 400, "not yet verified");
      publish(await call("GET", "/customdomains/lent.example.com"));
      await call("POST", "/customdomains/lent.example.com/verify");
      assert.equal((await share("borrower")).status, 200);
      assert.equal((await share("borrower")).status, 409);
      assert.equal((await share("main")).status, 400);
      assert.equal((await share("elsewhere")).status, 404, "another account");
      assert.equal((await share("no-such")).status, 404);

      const seen = await call("GET", "/customdomains/lent.example.com", { workspace: "borrower" });
      assert.equal(seen.body.metadata.sharedFromWorkspace, "main");
      assert.equal(seen.body.metadata.workspace, "borrower");
      const names = async (workspace: string) =>
        (await call("GET", "/customdomains", { workspace })).body.map(
          (domain: { metadata: { name: string } }) => domain.metadata.name,
        );
      assert.deepEqual(await names("borrower"), ["lent.example.com"]);
      assert.deepEqual(await names("bystander"), []);
      for (const [method, path] of [
        ["DELETE", ""],
        ["POST", "/verify"],
      ] as const)
        assert.equal(
          (await call(method, `/customdomains/lent.example.com${path}`, { workspace: "borrower" })).status,
          404,
        );
      assert.equal((await call("DELETE", "/customdomains/lent.example.com")).status, 409);

      await call("POST", "/sandboxes", { body: { metadata: { name: "s" }, spec: {} }, workspace: "borrower" });
      const served = await call("POST", "/sandboxes/s/previews", {
        body: { metadata: { name: "p" }, spec: { port: 3000, customDomain: "lent.example.com", prefixUrl: "shop" } },
        workspace: "borrower",
      });
      assert.equal(served.status, 200, JSON.stringify(served.body));
      const holder = await store.claims.holderOf("host", "shop.lent.example.com");
      assert.equal(holder?.workspace, "borrower");

      assert.equal((await share("account")).status, 200);
      assert.deepEqual(await names("bystander"), ["lent.example.com"]);
      assert.deepEqual((await call("GET", "/customdomains", there())).body, []);
      const shares = (await call("GET", "/customdomains/lent.example.com/share")).body;
      assert.deepEqual(
        shares.map((one: { workspace: string }) => one.workspace),
        ["borrower", "account"],
      );
      for (const target of ["borrower", "account"]) {
        assert.ok(await store.claims.holderOf("host", "shop.lent.example.com"), "lent in one way or the other");
        assert.equal((await call("DELETE", `/customdomains/lent.example.com/share/${target}`)).status, 200);
      }
      assert.equal(await store.claims.holderOf("host", "shop.lent.example.com"), null);
      assert.equal((await call("DELETE", "/customdomains/lent.example.com/share/borrower")).status, 404);
      assert.deepEqual(await names("borrower"), []);
      assert.equal((await call("DELETE", "/customdomains/lent.example.com")).status, 200);
    });

    test("other tenants see nothing of it", async () => {
      await create("private.example.com");
      assert.equal((await call("GET", "/customdomains/private.example.com", there())).status, 404);
      assert.equal((await call("POST", "/customdomains/private.example.com/verify", there())).status, 404);
      assert.deepEqual((await call("GET", "/customdomains", there())).body, []);
    });

    test("an application's domain needs the application", async () => {
      const body = { metadata: { name: "shop.example.com" }, spec: {} };
      const missing = await call("POST", "/applications/none/customdomains", { body });
      assert.equal(missing.status, 404);
      await store.resources.create(draftOf("application", "shop"));
      const made = await call("POST", "/applications/shop/customdomains", { body });
      assert.equal(made.status, 200, JSON.stringify(made.body));
      assert.equal(made.body.spec.domainType, "applications");
      assert.equal(made.body.spec.application, "shop");
      publish(made);
      assert.equal((await call("POST", "/customdomains/shop.example.com/verify")).body.spec.status, "verified");
      assert.equal((await call("POST", "/applications/shop/customdomains", { body })).status, 409);
    });
  });
}
