import assert from "node:assert/strict";
import { test } from "node:test";
import { MASK } from "../../../src/contract/secret-fields.ts";
import type { Call } from "../../../src/kinds/port.ts";
import { sandboxBehaviour } from "../../../src/kinds/sandbox/behaviour.ts";
import type { Resource } from "../../../src/store/resources/resource.ts";
import { onEachDatabase } from "../../each-platform.ts";

const DAY_SECONDS = 24 * 3600;

await onEachDatabase(
  "sandboxes",
  ({ call, make, store, url }) => {
    const scope = { workspace: "main", kind: "sandbox", parent: "" };
    const setStatus = async (name: string, status: string) => {
      const resource = await store().resources.get(scope, name);
      await store().resources.update("main", resource?.uid ?? "", () => ({ status }));
    };

    const remove = (name: string) => call("DELETE", `/sandboxes/${name}`);

    test("an unnamed sandbox is given a name and everything it did not say", async () => {
      const made = await make("/sandboxes", null);
      assert.match(made.metadata.name, /^sandbox-[0-9a-f]{8}$/);
      assert.equal(made.metadata.url, `${url()}/main/sandboxes/${made.metadata.name}`);
      assert.equal(made.status, "DEPLOYED", "it can be used at once");
      assert.equal(made.events.at(-1).type, "deployed");
      assert.equal(made.spec.runtime.image, "service/base-image:latest");
      assert.equal(made.spec.runtime.memory, 4096);
      assert.equal(made.spec.runtime.generation, "mk3");
      assert.equal(made.spec.region, "local");
      assert.equal(made.spec.vpc, "default");
      assert.equal(made.expiresIn, undefined);
      assert.deepEqual([made.state, made.isolation], ["RUNNING", "none"]);
      const bare = await call("POST", "/sandboxes", { body: {} });
      assert.equal(bare.status, 200);
      assert.notEqual(bare.body.metadata.name, made.metadata.name);
    });

    test("a second one of the same name is refused in the words that clients know", async () => {
      await make("/sandboxes", "twice");
      const { status, body } = await call("POST", "/sandboxes", { body: { metadata: { name: "twice" }, spec: {} } });
      assert.equal(status, 409);
      assert.deepEqual(
        [body.code, body.error, body.sandbox_name, body.status_code, body.step, body.workspace],
        ["SANDBOX_ALREADY_EXISTS", "already_exists", "twice", 409, "conflict", "main"],
      );
      assert.ok(Date.parse(body.timestamp) > 0);
    });

    test("createIfNotExist answers with what is there, once for all who ask", async () => {
      const body = { metadata: { name: "shared" }, spec: { runtime: { memory: 512 } } };
      const answers = await Promise.all(
        Array.from({ length: 8 }, () => call("POST", "/sandboxes?createIfNotExist=true", { body })),
      );
      assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
      assert.equal(new Set(answers.map((answer) => answer.body.metadata.uid)).size, 1);
    });

    test("createIfNotExist makes a new one in place of one that has ended", async () => {
      const endings = { FAILED: (name: string) => setStatus(name, "FAILED"), TERMINATED: remove };
      for (const [status, end] of Object.entries(endings)) {
        const first = await make("/sandboxes", `ended-${status.toLowerCase()}`);
        const { name, uid } = first.metadata;
        await end(name);
        const again = await call("POST", "/sandboxes?createIfNotExist=true", {
          body: { metadata: { name }, spec: {} },
        });
        assert.equal(again.status, 200);
        assert.notEqual(again.body.metadata.uid, uid);
        const listed = await call("GET", `/sandboxes?q=${name}`);
        assert.equal(listed.body.data.length, 1);
        const all = await call("GET", `/sandboxes?showTerminated=true&q=${name}`);
        assert.equal(all.body.data.length, 2);
      }
    });

    test("createIfNotExist never reuses a sandbox that is leaving", () => {
      const asked = { query: { createIfNotExist: true } } as unknown as Call;
      for (const status of ["DELETING", "DEACTIVATING"]) {
        assert.equal(sandboxBehaviour.onExists?.({ status, deletedAt: null } as Resource, asked, 0), "refuse", status);
      }
      assert.equal(sandboxBehaviour.onExists?.({ status: "DEPLOYED", deletedAt: null } as Resource, asked, 0), "reuse");
    });

    test("a sandbox is found by its external id, and the id stays when an update leaves it out", async () => {
      const made = await make("/sandboxes", "external", {}, { externalId: "Ticket-42" });
      assert.equal((await call("GET", "/sandboxes/by-external-id/Ticket-42")).body.metadata.uid, made.metadata.uid);
      await call("PUT", "/sandboxes/external", { body: { metadata: { name: "external" }, spec: made.spec } });
      assert.equal((await call("GET", "/sandboxes?externalId=Ticket-42")).body.data.length, 1);
      assert.equal((await call("GET", "/sandboxes/by-external-id/Ticket-43")).status, 404);
      await call("DELETE", "/sandboxes/external");
      assert.equal((await call("GET", "/sandboxes/by-external-id/Ticket-42")).status, 404);
    });

    test("lifetimes are checked, the earliest counts, and null takes them away", async () => {
      const made = await make("/sandboxes", "mortal", {
        runtime: { ttl: "7d", expires: "2099-01-01T00:00:00Z" },
        lifecycle: {
          expirationPolicies: [
            { type: "ttl-idle", value: "2d" },
            { type: "ttl-max-age", value: "24h" },
          ],
          terminatedRetention: "10m",
        },
      });
      assert.ok(made.expiresIn > DAY_SECONDS - 60 && made.expiresIn <= DAY_SECONDS);
      assert.equal(made.spec.lifecycle.expirationPolicies[0].action, "delete");
      const body = { ...made, spec: { ...made.spec, lifecycle: null, runtime: { ...made.spec.runtime, ttl: null } } };
      const longer = await call("PUT", "/sandboxes/mortal", { body });
      assert.ok(longer.body.expiresIn > 365 * DAY_SECONDS);
      const cleared = { ...body, spec: { ...body.spec, runtime: { ...body.spec.runtime, expires: "" } } };
      assert.equal((await call("PUT", "/sandboxes/mortal", { body: cleared })).body.expiresIn, undefined);
    });

    test("what is wrong is refused with its path, in the sandbox's own words", async () => {
      const cases: [object, RegExp][] = [
        [{ runtime: { ttl: "soon" } }, /^spec\.runtime\.ttl: /],
        [{ runtime: { ttl: "0s" } }, /^spec\.runtime\.ttl: /],
        [{ runtime: { ttl: "999999999999w" } }, /^spec\.runtime\.ttl: /],
        [{ runtime: { expires: "tomorrow" } }, /^spec\.runtime\.expires: /],
        [{ runtime: { expires: "2020-01-01T00:00:00Z" } }, /^spec\.runtime\.expires: must be in the future/],
        [
          { lifecycle: { expirationPolicies: [{ type: "date", value: "7d" }] } },
          /^spec\.lifecycle\.expirationPolicies\[0\]\.value: /,
        ],
        [{ lifecycle: { expirationPolicies: [{ type: "never", value: "7d" }] } }, /expirationPolicies\[0\]\.type/],
        [{ runtime: { memory: 0 } }, /spec\.runtime\.memory/],
        [{ runtime: { extraArgs: { tun: "yes" } } }, /spec\.runtime\.extraArgs\.tun/],
        [{ runtime: { envs: [{ name: "BL_WORKSPACE", value: "x" }] } }, /spec\.runtime\.envs\[0\]\.name/],
        [{ runtime: { envs: [{ name: "LONG", value: "é".repeat(70_000) }] } }, /spec\.runtime\.envs\[0\]\.value/],
        [{ runtime: { ports: [{ target: 70000 }] } }, /spec\.runtime\.ports\[0\]\.target/],
        [{ volumes: [{ name: "nowhere", mountPath: "/data" }] }, /^spec\.volumes\[0\]\.name: volume 'nowhere'/],
        [{ volumes: [{ name: "v", mountPath: "data" }] }, /spec\.volumes\[0\]\.mountPath/],
      ];
      for (const [spec, message] of cases) {
        const answer = await call("POST", "/sandboxes", { body: { metadata: { name: "wrong" }, spec } });
        assert.equal(answer.status, 400, JSON.stringify(spec));
        assert.match(answer.body.message, message);
        assert.deepEqual(
          [answer.body.code, answer.body.error, answer.body.sandbox_name, answer.body.step],
          ["INVALID_REQUEST", "invalid_field", "wrong", "validation"],
        );
      }
      const missing = await call("PUT", "/sandboxes/nobody", { body: { metadata: {}, spec: {} } });
      assert.deepEqual([missing.status, missing.body.code, missing.body.sandbox_name], [404, 404, "nobody"]);
    });

    test("the network is kept as a whole, its secrets are never shown again, and {} takes it away", async () => {
      const proxy = {
        routing: [{ destinations: ["api.example.test"], headers: { "X-Key": "{{SECRET:k}}" }, secrets: { k: "hush" } }],
        bypass: ["*.internal.test"],
      };
      const made = await make("/sandboxes", "networked", { network: { proxy, allowedDomains: ["example.test"] } });
      assert.equal(made.spec.network.proxy.routing[0].secrets.k, MASK);
      assert.equal(made.errors, undefined);
      const shown = await call("GET", "/sandboxes/networked?show_secrets=true");
      assert.equal(shown.body.spec.network.proxy.routing[0].secrets.k, MASK);
      await call("PUT", "/sandboxes/networked", { body: made });
      // A secret that nobody can read must not be sent elsewhere by who writes its mask back.
      const moved = structuredClone(made);
      moved.spec.network.proxy.routing[0].destinations = ["evil.example.test"];
      const refused = await call("PUT", "/sandboxes/networked", { body: moved });
      assert.equal(refused.status, 400, JSON.stringify(refused.body));
      assert.match(refused.body.message, /^spec\.network\.proxy\.routing\.0\.secrets\.k: is masked/);
      const stored = await store().resources.get(scope, "networked");
      assert.ok(stored);
      assert.deepEqual(Object.values(store().resources.secretsOf(stored)), ["hush"]);
      const cleared = await call("PUT", "/sandboxes/networked", {
        body: { ...made, spec: { ...made.spec, network: {} } },
      });
      assert.deepEqual([cleared.body.spec.network, cleared.body.errors], [undefined, undefined]);
      const after = await store().resources.get(scope, "networked");
      assert.equal(after?.sealedSecrets, null);
    });

    test("what is fixed at creation stays: kernel options are ignored, volumes and region refused", async () => {
      const made = await make("/sandboxes", "fixed", { runtime: { extraArgs: { tun: "enabled" } } });
      const other = { ...made.spec.runtime, extraArgs: { tun: "disabled", nfs: "enabled" } };
      const put = await call("PUT", "/sandboxes/fixed", { body: { ...made, spec: { ...made.spec, runtime: other } } });
      assert.deepEqual(put.body.spec.runtime.extraArgs, { tun: "enabled" });
      await make("/volumes", "late");
      for (const change of [{ volumes: [{ name: "late", mountPath: "/late" }] }, { region: "north" }]) {
        const refused = await call("PUT", "/sandboxes/fixed", { body: { ...made, spec: { ...made.spec, ...change } } });
        assert.equal(refused.status, 400);
        assert.equal(refused.body.error, "immutable_field");
      }
      const auto = await call("PUT", "/sandboxes/fixed", { body: { ...made, spec: { ...made.spec, region: "auto" } } });
      assert.equal(auto.body.spec.region, "local");
    });

    test("a volume is one sandbox's at a time, and goes where it is", async () => {
      await make("/volumes", "data", { region: "north" });
      const volumes = [
        { name: "data", mountPath: "/data" },
        { name: "scratch", mountPath: "/tmp/x", type: "ephemeral", sizeMb: 10 },
      ];
      const made = await make("/sandboxes", "holder", { volumes });
      assert.equal(made.spec.region, "north");
      assert.equal((await call("GET", "/volumes/data")).body.state.attachedTo, "sandbox:holder");
      const listed = await call("GET", "/volumes?q=data");
      assert.equal(listed.body.data[0].state.attachedTo, "sandbox:holder");
      const taken = await call("POST", "/sandboxes", { body: { metadata: { name: "second" }, spec: { volumes } } });
      assert.equal(taken.status, 409);
      assert.match(taken.body.message, /spec\.volumes\[0\]\.name: volume 'data' is in use by sandbox 'holder'/);
      const kept = await call("DELETE", "/volumes/data");
      assert.equal(kept.status, 409);
      assert.match(kept.body.message, /in use by sandbox 'holder'/);
      const elsewhere = { metadata: { name: "south" }, spec: { region: "south", volumes } };
      assert.match((await call("POST", "/sandboxes", { body: elsewhere })).body.message, /no region 'south' here/);
      await call("DELETE", "/sandboxes/holder");
      assert.equal((await call("GET", "/volumes/data")).body.state.attachedTo, undefined);
      await make("/sandboxes", "second", { volumes });
      await call("DELETE", "/sandboxes/second");
      assert.ok((await call("DELETE", "/volumes/data")).body.terminatedAt);
    });

    test("policies named by a sandbox count as used", async () => {
      await make("/policies", "place", { type: "location", locations: [{ type: "country", name: "us" }] });
      await make("/sandboxes", "ruled", { policies: ["place"] });
      assert.equal((await call("GET", "/policies/place")).body.usage.sandboxes, 1);
    });
  },
  { config: { region_aliases: "north", country: "us" } },
);

test("the brand is the first part of the default image", async () => {
  const { startTestPlatform } = await import("../../platform.ts");
  await using platform = await startTestPlatform({ config: { brand: "acme" } });
  const { body } = await platform.call("POST", "/sandboxes", { body: {} });
  assert.equal(body.spec.runtime.image, "acme/base-image:latest");
});
