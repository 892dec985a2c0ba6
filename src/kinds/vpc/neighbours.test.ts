import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { addWorkspace, draftOf, openTestStore } from "../../../test/store.ts";
import { Activity } from "../../lib/activity.ts";
import { isRefusal } from "../../lib/network/egress/egress-refusal.ts";
import { parseHost } from "../../lib/network/egress/host.ts";
import type { Neighbours } from "../../lib/network/egress/neighbours.ts";
import type { WorkloadVpc } from "../../lib/network/egress/workload-vpc.ts";
import { systemClock } from "../../lib/time/clock.ts";
import type { Endpoint } from "../../node/dial/endpoint.ts";
import type { Draft } from "../../store/resources/resources.ts";
import type { Store } from "../../store/store.ts";
import { compileNetwork } from "../workload/network.ts";
import { createNeighbours } from "./neighbours.ts";

const endpoint = (dir: string): Endpoint => ({ kind: "unix", node: "here", dir });
const running = (uid: string) => ({
  state: { instances: [{ uid, revision: null, endpoint: endpoint(uid), phase: "running" }] },
});
const LAB: WorkloadVpc = { id: "v", name: "lab", internal: true, routes: [] };

describe("names of workloads in a VPC", () => {
  const dataDir = mkdtempSync(join(tmpdir(), "berth-vpc-"));
  let store: Store;
  let neighbours: Neighbours<Endpoint>;
  const activity = new Activity(systemClock);

  before(async () => {
    store = await openTestStore({ dataDir, databaseUrl: null });
    for (const workspace of ["main", "other"]) await addWorkspace(store, workspace);
    const add = (kind: string, name: string, more: Partial<Draft> = {}): Promise<unknown> =>
      store.write((tx) => store.resources.insert(tx, draftOf(kind, name, { spec: { vpc: "lab" }, ...more })));
    await add("agent", "api", running("copy-of-agent"));
    await add("sandbox", "api", running("sandbox-api"));
    await add("application", "shop", running("copy-of-shop"));
    await add("function", "tool", running("copy-of-tool"));
    await add("job", "nightly", running("task"));
    await add("sandbox", "outside", { spec: {}, ...running("outside") });
    await add("sandbox", "off", { status: "DEACTIVATED" });
    await add("sandbox", "theirs", { workspace: "other", ...running("theirs") });
    await add("sandbox", "caller", { uid: "caller" });
    neighbours = createNeighbours({
      ...{ store, clock: systemClock, activity, node: "here" },
      rules: {
        of: async () => ({ ...compileNetwork({}), vpc: LAB }),
        ownerOf: (uid) => store.resources.getAcrossWorkspaces(uid),
      },
    });
  });
  after(async () => {
    await store.close();
    rmSync(dataDir, { recursive: true, force: true });
  });

  async function find(name: string): Promise<string | null> {
    const host = parseHost(name) ?? assert.fail(name);
    const found = await neighbours.find("caller", host);
    return found && (isRefusal(found) ? found.code : found.uid);
  }

  for (const [name, found] of [
    ["api.lab.internal", "copy-of-agent"],
    ["api.agent.lab.internal", "copy-of-agent"],
    ["api.sandbox.lab.internal", "sandbox-api"],
    ["shop.lab.internal", "copy-of-shop"],
    ["tool.lab.internal", "copy-of-tool"],
    ["nightly.lab.internal", "name_not_resolved"],
    ["outside.lab.internal", "name_not_resolved"],
    ["theirs.lab.internal", "name_not_resolved"],
    ["lab.internal", "name_not_resolved"],
    ["x.api.agent.lab.internal", "name_not_resolved"],
    ["off.lab.internal", "workload_not_running"],
    ["api.default.internal", null],
    ["api.lab.internal.example.com", null],
    ["apilab.internal", null],
    ["example.com", null],
    ["198.18.0.2", null],
  ] as const)
    test(`${name} is ${found ?? "a name like any other"}`, async () => assert.equal(await find(name), found));

  test("the resource that was made first keeps its name", async () => {
    const agent = await store.resources.get({ workspace: "main", kind: "agent", parent: "" }, "api");
    await store.write((tx) =>
      store.resources.modify(tx, "main", agent?.uid ?? "", () => ({ spec: { vpc: "default" } })),
    );
    assert.equal(await find("api.lab.internal"), "sandbox-api", "it left the VPC");
    await store.write((tx) => store.resources.modify(tx, "main", agent?.uid ?? "", () => ({ spec: { vpc: "lab" } })));
    assert.equal(await find("api.lab.internal"), "copy-of-agent");
  });

  test("a workload of another server is refused with the server's name", async () => {
    await store.write((tx) =>
      store.resources.insert(tx, draftOf("sandbox", "far", { spec: { vpc: "lab" }, node: "there", ...running("far") })),
    );
    const found = await neighbours.find("caller", parseHost("far.lab.internal") ?? assert.fail());
    assert.ok(found && isRefusal(found));
    assert.equal(found.code, "other_server");
    assert.match(found.message, /runs on the server there/);
  });

  test("packets of another workload wake a sandbox that sleeps", async () => {
    await neighbours.touch("caller");
    const caller = await store.resources.getAcrossWorkspaces("caller");
    assert.ok(Number(caller?.state.wantedAt) > 0);
    assert.ok(activity.lastOf("caller") > 0);
    await neighbours.touch("unknown");
  });

  test("a connection counts as use of the workload", async () => {
    const found = await neighbours.find("caller", parseHost("shop.lab.internal") ?? assert.fail());
    assert.ok(found && !isRefusal(found));
    const end = found.use();
    assert.equal(activity.openOf("copy-of-shop"), 1);
    end();
    assert.equal(activity.openOf("copy-of-shop"), 0);
  });
});
