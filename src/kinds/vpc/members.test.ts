import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { ruledPlace } from "../../../test/egress-place.ts";
import { addWorkspace, draftOf, openTestStore } from "../../../test/store.ts";
import { parseOperatorNetwork } from "../../lib/network/egress/operator-networks.ts";
import { compileNetwork } from "../workload/network.ts";
import { vpcOf } from "./members.ts";

test("a route that the operator offers no longer is closed, and the refusal says so", async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), "berth-vpc-routes-"));
  t.after(() => rmSync(dataDir, { recursive: true, force: true }));
  const store = await openTestStore({ dataDir, databaseUrl: null });
  t.after(() => store.close());
  await addWorkspace(store);
  const routes = ["10.20.3.0/24", "10.30.0.0/16"];
  await store.resources.create(draftOf("vpc", "lab", { spec: { routes } }));
  const offered = [parseOperatorNetwork("10.30.0.0/16", ""), parseOperatorNetwork("other=10.20.0.0/16", "")];
  const vpc = await vpcOf({ workspace: "main", kind: "sandbox", spec: { vpc: "lab" } }, offered, store);
  assert.deepEqual(
    vpc?.routes.map(({ cidr }) => cidr),
    ["10.30.0.0/16"],
  );
  const rules = { of: async () => compileNetwork({}, [], null, vpc), onChange: () => () => {} };
  const { tunnel } = await ruledPlace(t, {}, { rules });
  const closed = (await tunnel("10.20.3.7:80")).head;
  assert.match(closed, /^HTTP\/1\.1 403 .*destination_forbidden.*VPC 'lab' has a route to .*no longer offers/s);
  assert.match((await tunnel("10.20.4.7:80")).head, /10\.20\.4\.7 is not a public address/);
});
