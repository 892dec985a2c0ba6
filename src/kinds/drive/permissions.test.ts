import assert from "node:assert/strict";
import { test } from "node:test";
import { driveAccess, workloadLabels } from "./permissions.ts";

const labels = workloadLabels(
  { workspace: "main", kind: "sandbox", name: "s1", metadata: { labels: { team: "red", "service-name": "forged" } } },
  "acme",
);

test("a workload is known by its labels and by what it is, which no label can forge", () => {
  assert.equal(labels.team, "red");
  assert.equal(labels["service-name"], "s1");
  assert.equal(labels["acme-type"], "sandbox");
});

test("the first rule that matches decides", () => {
  const open = { mode: "read-write", path: "/" } as const;
  const cases: [Parameters<typeof driveAccess>[0], ReturnType<typeof driveAccess>][] = [
    [undefined, open],
    [[], open],
    [[{ labels: { team: "blue" } }], null],
    [[{ labels: { team: "red" }, mode: "read" }], { mode: "read", path: "/" }],
    [[{ labels: { team: "red", size: "xl" } }], null],
    [[{ labels: { team: "blue" } }, { labels: { team: "red" }, path: "/a" }, {}], { mode: "read-write", path: "/a" }],
    [[{}], open],
    [[{ labels: { "service-name": "s1" } }], open],
  ];
  for (const [rules, expected] of cases) assert.deepEqual(driveAccess(rules, labels), expected);
});
