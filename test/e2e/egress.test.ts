import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { assignWaiting } from "../../src/kinds/egress-ip/addresses.ts";
import { testDatabases } from "../databases.ts";
import { makeAccount, makeUser } from "../identities.ts";
import { startTestPlatform, type TestPlatform } from "../platform.ts";
import { type ReadResource, readUntil } from "./read-until.ts";

const databases = await testDatabases();
after(() => databases.stop());

/** The last two are one address in two spellings. */
const POOL = ["203.0.113.1", "203.0.113.2", "203.0.113.3", "2001:db8::1", "2001:DB8:0::1"];
const GATEWAYS = "/vpcs/default/egressgateways";
const IPS = `${GATEWAYS}/gw/ips`;

for (const database of databases.aboveStore) {
  describe(`VPCs and egress on ${database.name}`, { skip: database.skip }, () => {
    let platform: TestPlatform;
    let place: Awaited<ReturnType<typeof database.fresh>>;
    const call: TestPlatform["call"] = (method, path, options = {}) =>
      platform.call(method, path, { workspace: "main", ...options });
    const addIp = (name: string, spec: object = { ipFamily: "IPv4" }, at = IPS) =>
      call("POST", at, { body: { metadata: { name }, spec } });

    /** Reads a resource until it is as expected. */
    const until = (path: string, isSo: (resource: ReadResource) => boolean) => readUntil(call, path, isSo);

    before(async () => {
      place = await database.migrated();
      platform = await startTestPlatform({ ...place, config: { egress_pool: POOL.join(",") } });
      await call("POST", GATEWAYS, { body: { metadata: { name: "gw" }, spec: { region: "local" } } });
    });
    after(() => platform.stop());

    test("every workspace has a default VPC that stays", async () => {
      const listed = await call("GET", "/vpcs");
      assert.deepEqual(
        listed.body.map((vpc: { metadata: { name: string } }) => vpc.metadata.name),
        ["default"],
      );
      assert.equal((await call("GET", "/vpcs/default")).body.status, "DEPLOYED");
      assert.equal((await call("DELETE", "/vpcs/default")).status, 409);
      assert.equal((await call("POST", "/vpcs", { body: { metadata: { name: "default" } } })).status, 409);
      assert.equal((await call("POST", "/vpcs", { body: { metadata: { name: "Bad Name" } } })).status, 400);
    });

    test("an egress IP gets an address of its own and its place in metadata", async () => {
      const made = await addIp("one", { publicIp: "6.6.6.6" });
      assert.equal(made.status, 200, JSON.stringify(made.body));
      assert.equal(made.body.spec.ipFamily, "IPv4");
      assert.equal(made.body.spec.publicIp, POOL[0]);
      assert.equal(made.body.status, "DEPLOYING");
      assert.equal(made.body.metadata.vpcName, "default");
      assert.equal(made.body.metadata.gatewayName, "gw");
      const six = await addIp("six", { ipFamily: "IPv6" });
      assert.equal(six.body.spec.publicIp, "2001:db8::1");
      const none = await addIp("seven", { ipFamily: "IPv6" });
      assert.equal(none.body.status, "DEPLOYING");
      assert.equal(none.body.spec.publicIp, undefined);
      assert.match(none.body.events.at(-1).message, /in use/);
      const all = await call("GET", "/egressips");
      assert.deepEqual(
        all.body.map((ip: { metadata: { name: string; gatewayName: string } }) => [
          ip.metadata.name,
          ip.metadata.gatewayName,
        ]),
        [
          ["seven", "gw"],
          ["six", "gw"],
          ["one", "gw"],
        ],
      );
      for (const name of ["one", "six", "seven"]) assert.equal((await call("DELETE", `${IPS}/${name}`)).status, 200);
    });

    test("an address goes to one only, however many ask at once", async () => {
      const made = await Promise.all(Array.from({ length: 6 }, (_, n) => addIp(`race-${n}`)));
      const given = made.flatMap(({ body }) => (body.spec.publicIp ? [body.spec.publicIp] : [])).sort();
      assert.deepEqual(given, POOL.slice(0, 3));
      await Promise.all(Array.from({ length: 6 }, (_, n) => call("DELETE", `${IPS}/race-${n}`)));
      assert.equal((await addIp("again")).body.spec.publicIp, POOL[0], "a deleted one gives its address back");
      await call("DELETE", `${IPS}/again`);
    });

    test("names and display names have their limits", async () => {
      assert.equal((await addIp("a".repeat(49))).status, 200);
      assert.equal((await addIp("a".repeat(50))).status, 400);
      assert.equal((await addIp("Upper")).status, 400);
      assert.equal((await addIp("fam", { ipFamily: "IPv5" })).status, 400);
      const long = await call("POST", IPS, {
        body: { metadata: { name: "shown", displayName: "é".repeat(64) }, spec: { ipFamily: "IPv4" } },
      });
      assert.match(long.body.message, /metadata\.displayName/);
      const emoji = await call("POST", IPS, {
        body: { metadata: { name: "emoji", displayName: "🚢".repeat(63) }, spec: { ipFamily: "IPv4" } },
      });
      assert.equal(emoji.status, 200, "63 characters, whatever they take in memory");
      await call("DELETE", `${IPS}/emoji`);
      const bare = await call("POST", IPS, { body: { metadata: { name: "bare" } } });
      assert.match(bare.body.message, /^spec: /);
      await call("DELETE", `${IPS}/${"a".repeat(49)}`);
    });

    test("what is not empty is not deleted", async () => {
      await call("POST", "/vpcs", { body: { metadata: { name: "lab" }, spec: {} } });
      await call("POST", "/vpcs/lab/egressgateways", {
        body: { metadata: { name: "out" }, spec: { region: "local" } },
      });
      await addIp("ip", {}, "/vpcs/lab/egressgateways/out/ips");
      assert.equal((await call("DELETE", "/vpcs/lab")).status, 409);
      const refused = await call("DELETE", "/vpcs/lab/egressgateways/out");
      assert.equal(refused.status, 409);
      assert.match(refused.body.message, /egressip 'ip'/);
      assert.equal((await call("GET", "/vpcs/lab/egressgateways/out")).body.status, "DEPLOYING", "nothing was marked");
      const gateways = await call("GET", "/egressgateways");
      assert.ok(
        gateways.body.some(
          ({ metadata }: { metadata: { name: string; vpcName: string } }) =>
            metadata.name === "out" && metadata.vpcName === "lab",
        ),
      );
      await call("DELETE", "/vpcs/lab/egressgateways/out/ips/ip");
      assert.equal((await call("DELETE", "/vpcs/lab/egressgateways/out")).status, 200);
      assert.equal((await call("DELETE", "/vpcs/lab")).status, 200);
      assert.equal((await call("GET", "/vpcs/lab")).status, 404);
    });

    test("usage is by gateway, also of one that nobody uses", async () => {
      assert.deepEqual((await call("GET", "/egressgateways/usage")).body, { gw: [] });
    });

    test("usage has workloads of every kind, and a gateway that one of them uses stays", async () => {
      await call("POST", GATEWAYS, { body: { metadata: { name: "busy" } } });
      const network = { egress: { mode: "dedicated", gateway: "busy" } };
      const spec = { network, enabled: false, runtime: { image: "service/py-app:latest" } };
      const plurals = ["sandboxes", "agents", "functions", "applications", "jobs"];
      for (const plural of plurals) {
        const made = await call("POST", `/${plural}`, { body: { metadata: { name: `out-${plural}` }, spec } });
        assert.equal(made.status, 200, JSON.stringify(made.body));
      }
      const used = await call<{ busy: string[] }>("GET", "/egressgateways/usage");
      assert.deepEqual(new Set(used.body.busy), new Set(plurals.map((plural) => `out-${plural}`)));
      for (const plural of plurals) {
        const refused = await call("DELETE", `${GATEWAYS}/busy`);
        assert.deepEqual([refused.status, /in use by \w+ 'out-/.test(refused.body.message)], [409, true]);
        await call("DELETE", `/${plural}/out-${plural}`);
      }
      await until("/egressgateways/usage", (usage) => JSON.stringify(usage).includes('"busy":[]'));
      assert.equal((await call("DELETE", `${GATEWAYS}/busy`)).status, 200);
    });

    test("the map has each gateway with its VPC, also one without addresses and workloads", async () => {
      const { status, body } = await call("GET", "/egressgateways/map");
      assert.equal(status, 200);
      const own = body.find(({ gateway }) => gateway === "gw");
      assert.deepEqual([own?.vpc, own?.workloads, own?.workloadCount], ["default", [], 0]);
    });

    test("a gateway in a region that is not here is refused", async () => {
      const made = await call("POST", GATEWAYS, { body: { metadata: { name: "far" }, spec: { region: "eu-lon-1" } } });
      assert.equal(made.status, 400);
      assert.match(made.body.message, /spec\.region: there is no region 'eu-lon-1' here; use local/);
    });

    test("an address that the machine does not have stays DEPLOYING and says so, and so does its gateway", async () => {
      await addIp("honest");
      const ip = await until(`${IPS}/honest`, ({ events }) => /No interface/.test(events.at(-1)?.message ?? ""));
      assert.equal(ip.status, "DEPLOYING");
      const gateway = await until(`${GATEWAYS}/gw`, ({ events }) => /no egress IP/.test(events.at(-1)?.message ?? ""));
      assert.equal(gateway.status, "DEPLOYING");
      assert.doesNotMatch(JSON.stringify((await call("GET", "/publicIps")).body), /203\.0\.113/);
      await call("DELETE", `${IPS}/honest`);
    });

    test("other tenants have networks of their own but share the pool", async () => {
      const { store } = platform.app;
      const other = await makeAccount(store, "elsewhere");
      const owner = await makeUser(store, other.id, "admin", { elsewhere: "admin" });
      const there = { key: owner.key, workspace: "elsewhere" };
      const mine = await addIp("mine");
      assert.equal((await call("GET", `${IPS}/mine`, there)).status, 404);
      assert.deepEqual((await call("GET", "/egressips", there)).body, []);
      await call("POST", GATEWAYS, { ...there, body: { metadata: { name: "gw" } } });
      const theirs = await call("POST", IPS, { ...there, body: { metadata: { name: "mine" }, spec: {} } });
      assert.notEqual(theirs.body.spec.publicIp, mine.body.spec.publicIp);
      await call("DELETE", "/workspaces/elsewhere", there);
      assert.equal(
        (await addIp("after")).body.spec.publicIp,
        theirs.body.spec.publicIp,
        "given back with the workspace",
      );
    });

    test("without a pool an egress IP waits, and gets an address from the first one configured", async () => {
      await platform.stop();
      platform = await startTestPlatform(place);
      await call("POST", GATEWAYS, { body: { metadata: { name: "dry" } } });
      const made = await addIp("thirsty", {}, `${GATEWAYS}/dry/ips`);
      assert.equal(made.body.status, "DEPLOYING");
      assert.match(made.body.events.at(-1).message, /egress_pool/);
      const { store } = platform.app;
      await assignWaiting({ store, settings: { egressPool: [] } });
      const same = await call("GET", `${GATEWAYS}/dry/ips/thirsty`);
      assert.equal(same.body.events.length, made.body.events.length, "the same news is not told twice");
      await assignWaiting({ store, settings: { egressPool: ["198.51.100.7"] } });
      const now = await call("GET", `${GATEWAYS}/dry/ips/thirsty`);
      assert.equal(now.body.spec.publicIp, "198.51.100.7");
      assert.ok(
        now.body.events.some(({ message }: { message: string }) => /198\.51\.100\.7 is reserved/.test(message)),
      );
    });
  });
}
