import assert from "node:assert/strict";
import { test } from "node:test";
import { stripVTControlCharacters } from "node:util";
import { z } from "zod";
import { defineKind } from "../contract/kind.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../lib/time/clock.ts";
import { LISTS } from "./lists.ts";
import { ageOf, renderTable } from "./table.ts";

const NOW = Date.UTC(2026, 0, 10);
const at = (agoMs: number): string => new Date(NOW - agoMs).toISOString();
const kind = defineKind({
  name: "box",
  plural: "boxes",
  summary: "",
  param: "boxName",
  verbs: ["list"],
  spec: z.object({
    secretly: z.string().optional(),
    region: z.string().optional(),
    size: z.int().optional(),
    parts: z.array(z.string()).optional(),
  }),
  readOnlySpec: ["secretly"],
});
const render = (rows: unknown[], of = kind) =>
  stripVTControlCharacters(renderTable(rows, { kind: of, nowMs: NOW, cut: true }))
    .split("\n")
    .map((line) => line.trimEnd());

test("a resource shows name, scalars of its spec, status and age", () => {
  const rows = [
    {
      metadata: { name: "one", createdAt: at(2 * HOUR_MS) },
      spec: { size: 5, region: "eu", secretly: "x", parts: ["a"] },
      status: "DEPLOYED",
    },
    { metadata: { name: "other", createdAt: at(3 * DAY_MS) }, spec: {}, status: "FAILED" },
  ];
  assert.deepEqual(render(rows), [
    "NAME   REGION  SIZE  STATUS    AGE",
    "one    eu      5     DEPLOYED  2h",
    "other  -       -     FAILED    3d",
  ]);
});

test("a plain record shows its scalars, name first", () => {
  assert.deepEqual(render([{ id: "1", name: "n", role: "admin", labels: {}, createdAt: at(0), createdBy: "x" }]), [
    "NAME  ID  ROLE   AGE",
    "n     1   admin  0s",
  ]);
});

test("a list with columns of its own: nodes with their memory, images with a row for each tag", () => {
  const shown = (noun: string, ...records: unknown[]) =>
    stripVTControlCharacters(renderTable(records, { kind: null, rowsOf: LISTS[noun], nowMs: NOW, cut: true }))
      .split("\n")
      .map((line) => line.trimEnd());
  const node = { id: "n-1", name: "left", drained: false, isSelf: true, version: "1.2.3", driver: "local", cpus: 2 };
  const resources = { sandbox: 2, volume: 1, drive: 0 };
  assert.deepEqual(
    shown(
      "node",
      { ...node, status: "live", memoryMb: 8192, usedMb: 512, resources },
      { ...node, name: "right", status: "lost", drained: true, memoryMb: 4096, usedMb: 0, resources: {} },
    ),
    [
      "NAME   STATUS  DRAINED  CPUS  MEMORY  USED      RESOURCES            VERSION  DRIVER",
      "left   live    no       2     8.0 GB  512.0 MB  2 sandbox, 1 volume  1.2.3    local",
      "right  lost    yes      2     4.0 GB  0 B       -                    1.2.3    local",
    ],
  );
  const image = { name: "r-5000-tool-1", resourceType: "registry", status: "FAILED", createdAt: at(DAY_MS) };
  const tag = { name: "1", image: "r:5000/tool:1", size: 2 ** 20, status: "DEPLOYED", updatedAt: at(HOUR_MS) };
  const typo = { name: "2", image: "r:5000/tool@sha256:0", status: "FAILED", updatedAt: at(0) };
  const own = { metadata: { ...image, name: "mine", resourceType: "sandbox", status: "DEPLOYED" }, spec: { tags: [] } };
  assert.deepEqual(shown("image", { metadata: image, spec: { tags: [tag, typo] } }, own), [
    "IMAGE         TAG  SIZE    STATUS    AGE",
    "r:5000/tool   1    1.0 MB  DEPLOYED  1h",
    "r:5000/tool   2    -       FAILED    0s",
    "sandbox/mine  -    -       DEPLOYED  1d",
  ]);
});

test("what others wrote cannot move the cursor or break the line", () => {
  const [, line] = render([{ name: "a\u001b[2Jb\nc" }]);
  assert.equal(line, "a\uFFFD[2Jb c");
});

test("a cell is cut for people only", () => {
  const rows = [{ name: "x".repeat(100) }];
  assert.equal(renderTable(rows, { kind: null, nowMs: NOW, cut: true }).split("\n")[1], `${"x".repeat(79)}…`);
  assert.equal(renderTable(rows, { kind: null, nowMs: NOW, cut: false }).split("\n")[1], "x".repeat(100));
});

const AGES: [ms: number, shown: string][] = [
  [-5, "0s"],
  [59 * SECOND_MS, "59s"],
  [60 * SECOND_MS, "1m"],
  [59 * MINUTE_MS, "59m"],
  [23 * HOUR_MS, "23h"],
  [400 * DAY_MS, "400d"],
];
for (const [ms, shown] of AGES) test(`${ms} ms are ${shown}`, () => assert.equal(ageOf(NOW - ms, NOW), shown));
