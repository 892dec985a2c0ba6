import assert from "node:assert/strict";
import { test } from "node:test";
import { stripVTControlCharacters } from "node:util";
import { z } from "zod";
import { defineKind } from "../contract/kind.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../lib/time/clock.ts";
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
