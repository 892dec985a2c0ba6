/** A region that is not there is refused; an alias of the operator's is as good as the region's own name. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { startTestPlatform, type TestPlatform } from "../../platform.ts";

let platform: TestPlatform;
let dataDir: string;
const start = async (config: { region: string; region_aliases?: string }): Promise<void> => {
  platform = await startTestPlatform({ dataDir, config });
};
before(async () => {
  dataDir = mkdtempSync(join(tmpdir(), "berth-regions-"));
  await start({ region: "home-1", region_aliases: "us-pdx-1,eu-lon-1" });
});
after(async () => {
  await platform.stop();
  rmSync(dataDir, { recursive: true, force: true, maxRetries: 10 });
});

const REGIONAL: readonly [path: string, name: string][] = [
  ["/sandboxes", "box"],
  ["/volumes", "vol"],
  ["/drives", "drive"],
  ["/agents", "agent"],
  ["/functions", "function"],
  ["/jobs", "job"],
  ["/applications", "app"],
  ["/customdomains", "regions.example.test"],
  ["/vpcs/default/egressgateways", "gate"],
];

describe("what has a region", () => {
  for (const [path, name] of REGIONAL)
    test(`${path}: mars is refused, naming the regions there are; an alias is echoed`, async () => {
      const make = (region: string) => platform.call("POST", path, { body: { metadata: { name }, spec: { region } } });
      const refused = await make("mars");
      assert.equal(refused.status, 400, JSON.stringify(refused.body));
      assert.match(
        refused.body.message,
        /^spec\.region: there is no region 'mars' here; use home-1, us-pdx-1, eu-lon-1/,
      );
      assert.equal((await platform.call("GET", `${path}/${name}`)).status, 404, "nothing was made");
      const made = await make("us-pdx-1");
      assert.equal(made.status, 200, JSON.stringify(made.body));
      assert.equal(made.body.spec.region, "us-pdx-1");
    });

  test("what is left open is the server's own region", async () => {
    for (const region of [undefined, "", "auto"]) {
      const { body } = await platform.call("POST", "/volumes", {
        body: { metadata: { name: `open-${region ?? "none"}x` }, spec: { region } },
      });
      assert.equal(body.spec.region, "home-1", JSON.stringify(body));
      assert.equal(typeof body.spec.infrastructureId, "string");
    }
  });

  test("a workspace has one too", async () => {
    const make = (region: string) => platform.call("POST", "/workspaces", { body: { name: "regional", region } });
    const refused = await make("mars");
    assert.equal(refused.status, 400);
    assert.match(refused.body.message, /^region: there is no region 'mars' here; use home-1/);
    assert.equal((await make("eu-lon-1")).body.region, "eu-lon-1");
    const changed = await platform.call("PUT", "/workspaces/regional", { body: { region: "mars" } });
    assert.equal(changed.status, 400);
  });

  test("a volume and a sandbox that name the same region differently belong together", async () => {
    const spec = { region: "eu-lon-1", volumes: [{ name: "vol", mountPath: "/data" }] };
    const made = await platform.call("POST", "/sandboxes", { body: { metadata: { name: "with-vol" }, spec } });
    assert.equal(made.status, 200, JSON.stringify(made.body));
    assert.equal(made.body.spec.region, "eu-lon-1");
  });
});

describe("after the operator has dropped the aliases", () => {
  before(async () => {
    await platform.stop();
    await start({ region: "home-2" });
  });

  for (const [path, name] of [
    ...REGIONAL.filter(([at]) => !at.includes("egress")),
    ["/workspaces", "regional"],
  ] as const)
    test(`${path}: what is read can be written back`, async () => {
      const read = await platform.call("GET", `${path}/${name}`);
      assert.equal(read.status, 200);
      const written = await platform.call("PUT", `${path}/${name}`, { body: read.body });
      assert.equal(written.status, 200, JSON.stringify(written.body));
      assert.deepEqual(written.body.spec?.region ?? written.body.region, read.body.spec?.region ?? read.body.region);
    });

  test("a volume with a name of old still has a sandbox", async () => {
    await platform.call("DELETE", "/sandboxes/with-vol");
    const made = await platform.call("POST", "/sandboxes", {
      body: { metadata: { name: "later" }, spec: { volumes: [{ name: "vol", mountPath: "/data" }] } },
    });
    assert.equal(made.status, 200, JSON.stringify(made.body));
    assert.equal(made.body.spec.region, "home-2");
  });
});
