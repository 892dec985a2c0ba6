import assert from "node:assert/strict";
import { test } from "node:test";
import type { Resource } from "../store/resources/resource.ts";
import { trafficOf } from "./revision-choice.ts";

const resource = (spec: object, state: object, status = "DEPLOYED"): Resource =>
  ({ spec, state, status }) as unknown as Resource;
const shares = (of: Resource, latest: string, ids: string[]): number[] =>
  ids.map((id) => trafficOf(of, latest)(id).trafficPercent);

test("traffic is shown where it is, not where it was meant to go", () => {
  assert.deepEqual(shares(resource({}, {}), "2", ["2", "1"]), [100, 0], "nothing runs yet");
  const failed = resource({}, { activeRevision: "2" }, "FAILED");
  assert.deepEqual(shares(failed, "3", ["3", "2", "1"]), [0, 100, 0], "the third failed, the second answers");
  const underWay = resource({ revision: { active: "1" } }, { activeRevision: "2" });
  assert.deepEqual(shares(underWay, "2", ["2", "1"]), [100, 0], "the way back is not done yet");
  const choice = { revision: { canary: "1", canaryPercent: 20 } };
  const trial = resource(choice, { activeRevision: "2", canaryRevision: "1" });
  assert.deepEqual(shares(trial, "2", ["2", "1"]), [80, 20]);
  const early = resource(choice, { activeRevision: "2" });
  assert.deepEqual(shares(early, "2", ["2", "1"]), [100, 0], "the canary is not built yet");
});

test("each revision has the status of its own", () => {
  const failed = resource({}, { activeRevision: "1", revisions: { "2": { failed: "no" } } }, "FAILED");
  assert.deepEqual(
    ["2", "1"].map((id) => trafficOf(failed, "2")(id).status),
    ["FAILED", "DEPLOYED"],
  );
});
