import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "../../test/properties.ts";
import { PlatformError } from "../contract/errors.ts";
import { columnsOf, parseMetricsQuery, parseWindowQuery } from "./metrics-query.ts";

const WINDOW = { startTime: "2026-01-01T00:00:00Z", endTime: "2026-01-31T00:00:00Z" };

test("what is not asked for has its default", () => {
  const query = parseMetricsQuery({ ...WINDOW, workspace: undefined });
  assert.equal(query.resolution, "daily");
  assert.equal(query.limit, 100);
  assert.equal(query.cursor, null);
  assert.deepEqual([query.groupBy, query.filter], [[], {}]);
});

test("the order of groupBy does not matter", () => {
  const query = parseMetricsQuery({ ...WINDOW, groupBy: "billing_dimension,resource_uuid,workspace" });
  assert.deepEqual(query.groupBy, ["workspace", "resource_uuid", "billing_dimension"]);
});

test("each dimension fills its own field and those that follow from it", () => {
  const rows: [string[], string[]][] = [
    [[], []],
    [["workspace"], ["workspace"]],
    [["resource_type"], ["resourceType"]],
    [["resource_name"], ["workspace", "resourceType", "resourceName"]],
    [["resource_uuid"], ["workspace", "resourceType", "resourceName", "resourceUuid"]],
    [["billing_dimension"], ["resourceType", "dimension"]],
    [
      ["resource_type", "workspace"],
      ["workspace", "resourceType"],
    ],
  ];
  for (const [groupBy, columns] of rows) {
    const query = parseMetricsQuery(groupBy.length > 0 ? { ...WINDOW, groupBy: groupBy.join(",") } : WINDOW);
    assert.deepEqual(columnsOf(query.groupBy), columns);
  }
});

test("a limit above 100 is silently 100", () => {
  for (const [limit, expected] of [
    ["9".repeat(30), 100],
    ["1", 1],
    ["100", 100],
    ["101", 100],
    ["99999999999999999999", 100],
  ] as const) {
    assert.equal(parseMetricsQuery({ ...WINDOW, limit }).limit, expected);
  }
});

test("filters are taken as they are, and a workspace filter is for account admins", () => {
  const query = parseMetricsQuery({
    ...WINDOW,
    resourceType: "sandbox",
    billingDimension: "volume_storage_gbs",
    workspace: "lab",
  });
  assert.deepEqual(query.filter, { workspace: "lab", resourceType: "sandbox", dimension: "volume_storage_gbs" });
});

test("every bad parameter is refused by its name", () => {
  const rows: [string, Record<string, unknown>][] = [
    ["startTime", { endTime: WINDOW.endTime }],
    ["endTime", { startTime: WINDOW.startTime }],
    ["startTime", { ...WINDOW, startTime: "" }],
    ["startTime", { ...WINDOW, startTime: [WINDOW.startTime, WINDOW.startTime] }],
    ["label", { ...WINDOW, label: "team=a" }],
    ["label", { ...WINDOW, label: "" }],
    ["unit", { ...WINDOW, unit: "gbs" }],
    ["resolution", { ...WINDOW, resolution: "minutely" }],
    ["resolution", { ...WINDOW, resolution: "" }],
    ["resolution", { ...WINDOW, resolution: "hourly" }],
    ["groupBy", { ...WINDOW, groupBy: "" }],
    ["groupBy", { ...WINDOW, groupBy: "workspaces" }],
    ["groupBy", { ...WINDOW, groupBy: "toString" }],
    ["groupBy", { ...WINDOW, groupBy: "workspace,workspace" }],
    ["groupBy", { ...WINDOW, groupBy: "workspace,resource_type,resource_name,resource_uuid" }],
    ["groupBy", { ...WINDOW, groupBy: "workspace,".repeat(10_000) }],
    ["limit", { ...WINDOW, limit: "0" }],
    ["limit", { ...WINDOW, limit: "-1" }],
    ["limit", { ...WINDOW, limit: "1.5" }],
    ["limit", { ...WINDOW, limit: "ten" }],
    ["limit", { ...WINDOW, limit: "" }],
    ["workspace", { ...WINDOW, workspace: "" }],
    ["resourceName", { ...WINDOW, resourceName: "x".repeat(257) }],
    ["resourceUuid", { ...WINDOW, resourceUuid: "a\0b" }],
    ["billingDimension", { ...WINDOW, billingDimension: "cpu" }],
    ["billingDimension", { ...WINDOW, billingDimension: "constructor" }],
    ["resourcetype", { ...WINDOW, resourcetype: "sandbox" }],
  ];
  for (const [parameter, raw] of rows) {
    assert.throws(
      () => parseMetricsQuery(raw),
      refusal(parameter),
      `${parameter} of ${JSON.stringify(raw).slice(0, 200)}`,
    );
  }
  assert.throws(() => parseWindowQuery({ ...WINDOW, groupBy: "workspace" }), refusal("groupBy"));
});

test("no input whatever makes anything but a query or a 400", () => {
  const anyValue = fc.oneof(
    fc.string(),
    fc.constantFrom(...Object.values(WINDOW), "workspace", "hourly"),
    fc.array(fc.string()),
  );
  const anyName = fc.oneof(
    fc.constantFrom("startTime", "endTime", "groupBy", "limit", "resolution", "cursor", "__proto__"),
    fc.string(),
  );
  fc.assert(
    fc.property(fc.dictionary(anyName, anyValue), (raw) => {
      try {
        parseMetricsQuery(raw);
      } catch (error) {
        assert.ok(error instanceof PlatformError && error.status === 400, String(error));
      }
    }),
  );
});

const refusal = (parameter: string) => (error: unknown) =>
  error instanceof PlatformError &&
  error.status === 400 &&
  error.message.startsWith(`${parameter} `) &&
  error.body?.parameter === parameter;
