/** Location and flavor policies hold when a workload is made, changed and called. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type Answer, startTestPlatform, TEST_KEY, type TestPlatform } from "../../platform.ts";

let platform: TestPlatform;
let flavor: string;
before(async () => {
  platform = await startTestPlatform({ config: { region: "home-1", region_aliases: "us-pdx-1", country: "de" } });
  const { body } = await platform.call("GET", "/locations");
  flavor = body[0].flavors[0].name;
});
after(() => platform.stop());

const policy = (name: string, spec: object): Promise<Answer> =>
  platform.call("POST", "/policies", { body: { metadata: { name }, spec } });
const place = (type: string, name: string) => ({ type: "location", locations: [{ type, name }] });

/** Each kind with the path of a call to one of its name, and what it needs to be callable. */
const WORKLOADS: readonly [kind: string, path: string, spec: object, callOf: (name: string) => string][] = [
  ["sandbox", "/sandboxes", {}, (name) => `/main/sandboxes/${name}/process`],
  ["agent", "/agents", { runtime: { image: "service/py-app:latest" } }, (name) => `/main/agents/${name}`],
  ["function", "/functions", { runtime: { image: "service/py-app:latest" } }, (name) => `/main/functions/${name}/mcp`],
  ["job", "/jobs", { runtime: { image: "service/py-app:latest" } }, (name) => `/main/jobs/${name}/executions`],
];

for (const [kind, path, spec, callOf] of WORKLOADS)
  describe(kind, () => {
    const make = (name: string, policies: string[]): Promise<Answer> =>
      platform.call("POST", path, { body: { metadata: { name }, spec: { ...spec, policies } } });
    const ask = async (name: string): Promise<{ status: number; text: string }> => {
      const answer = await fetch(platform.url + callOf(name), {
        method: kind === "sandbox" ? "GET" : "POST",
        headers: { "x-service-authorization": `Bearer ${TEST_KEY}`, "content-type": "application/json" },
        ...(kind === "sandbox" ? {} : { body: JSON.stringify({ tasks: [{}] }) }),
      });
      return { status: answer.status, text: await answer.text() };
    };

    test("is not made where a policy does not let it run", async () => {
      const refusing: Record<string, object> = {
        mars: place("location", "mars"),
        france: place("country", "fr"),
        untold: place("continent", "eu"),
        gpu: { type: "flavor", flavors: [{ type: "gpu", name: "t4" }] },
      };
      for (const [name, rule] of Object.entries(refusing)) {
        assert.equal((await policy(`${kind}-${name}`, rule)).status, 200);
        const refused = await make(`${kind}-refused`, [`${kind}-${name}`]);
        assert.equal(refused.status, 403, JSON.stringify(refused.body));
        assert.equal(refused.body.error, "forbidden");
        assert.match(refused.body.message, new RegExp(`must not run here: policy '${kind}-${name}' allows`));
        assert.equal((await platform.call("GET", `${path}/${kind}-refused`)).status, 404);
      }
    });

    test("is made where every type of policy allows it", async () => {
      await policy(`${kind}-alias`, place("location", "us-pdx-1"));
      await policy(`${kind}-germany`, place("country", "de"));
      await policy(`${kind}-cpu`, { type: "flavor", flavors: [{ type: "cpu", name: flavor }] });
      await policy(`${kind}-others`, { ...place("country", "fr"), resourceTypes: ["application"] });
      const names = ["alias", "germany", "cpu", "others"].map((name) => `${kind}-${name}`);
      const made = await make(`${kind}-allowed`, names);
      assert.equal(made.status, 200, JSON.stringify(made.body));
      const both = await make(`${kind}-one-of-two`, [`${kind}-mars`, `${kind}-germany`]);
      assert.equal(both.status, 200, "one policy of a type is enough");
    });

    test("is not changed and not called once its policy says no, and both again when it says yes", async () => {
      await policy(`${kind}-moving`, place("country", "de"));
      const name = `${kind}-moved`;
      assert.equal((await make(name, [`${kind}-moving`])).status, 200);
      const before = await ask(name);
      assert.ok(!before.text.includes("must not run here"), before.text);
      const rule = async (country: string) => {
        const body = { metadata: { name: `${kind}-moving` }, spec: place("country", country) };
        assert.equal((await platform.call("PUT", `/policies/${kind}-moving`, { body })).status, 200);
      };
      await rule("fr");
      const called = await ask(name);
      assert.equal(called.status, 403, called.text);
      assert.match(called.text, /must not run here: policy .*-moving' allows country fr/);
      if (kind !== "job") assert.match(called.text, /POLICY_VIOLATION/);
      const { body } = await platform.call("GET", `${path}/${name}`);
      assert.equal((await platform.call("PUT", `${path}/${name}`, { body })).status, 403);
      const off = { ...body, spec: { ...body.spec, enabled: false } };
      assert.equal(
        (await platform.call("PUT", `${path}/${name}`, { body: off })).status,
        200,
        "it may be switched off",
      );
      await rule("de");
      assert.equal((await platform.call("PUT", `${path}/${name}`, { body })).status, 200);
      const again = await ask(name);
      assert.ok(!again.text.includes("must not run here"), again.text);
    });
  });
