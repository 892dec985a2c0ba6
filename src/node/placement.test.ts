import assert from "node:assert/strict";
import { test } from "node:test";
import type { NodeInfo } from "./nodes.ts";
import { type Need, placementOf } from "./placement.ts";

const node = (id: string, facts: Partial<NodeInfo> = {}): NodeInfo => ({
  id,
  name: `name-of-${id}`,
  address: null,
  version: "1",
  driver: "fake",
  capabilities: ["volumes"],
  runs: true,
  memoryMb: 1000,
  cpus: 1,
  usedMb: 500,
  drained: false,
  live: true,
  startedAt: 0,
  heartbeatAt: 0,
  ...facts,
});
/** A node whose driver mounts drives of other nodes. */
const local = (id: string, facts: Partial<NodeInfo> = {}): NodeInfo => node(id, { driver: "local", ...facts });
const volume = (name: string, on: string | null): Need => ({ kind: "volume", name, node: on });
const drive = (name: string, on: string | null): Need => ({ kind: "drive", name, node: on });
const full = { usedMb: 901 };
const drained = { drained: true };
const away = { live: false };
const closed = { runs: false };

/** The node that took the request is `a`. */
const ROWS: [string, NodeInfo[], Need[], string | RegExp][] = [
  ["the node that took the request", [node("a"), node("b", { usedMb: 0 })], [], "a"],
  ["the node of its volume", [node("a"), node("b")], [volume("v", "b")], "b"],
  ["the node of its volume, also when drained", [node("a"), node("b", drained)], [volume("v", "b")], "b"],
  [
    "no other when the node of its volume is away",
    [node("a"), node("b", away)],
    [volume("v", "b")],
    /'v' .* away: name-of-b/,
  ],
  ["no other when the node of its volume is unknown", [node("a")], [volume("v", "b")], /'v' .* away: b/],
  ["the node of its volume and its drive", [node("a"), node("b")], [volume("v", "b"), drive("d", "b")], "b"],
  ["what lies on no node binds nothing", [node("a"), node("b")], [volume("v", null)], "a"],
  [
    "a volume here and a drive there",
    [node("a"), node("b")],
    [volume("v", "a"), drive("d", "b")],
    /volume 'v' is on node name-of-a and drive 'd' is on node name-of-b/,
  ],
  ["the node of its drive", [local("a"), local("b")], [drive("d", "b")], "b"],
  ["another than the drained one of its drive", [local("a"), local("b", drained)], [drive("d", "b")], "a"],
  [
    "the node of its volume, with a drive of another",
    [local("a"), local("b")],
    [volume("v", "a"), drive("d", "b")],
    "a",
  ],
  ["the first of two drives", [local("a"), local("b"), local("c")], [drive("d", "c"), drive("e", "b")], "c"],
  [
    "no node while its drive is away",
    [local("a"), local("b", away)],
    [drive("d", "b")],
    /drive 'd' .* away: name-of-b/,
  ],
  ["another when this node is drained", [node("a", drained), node("b")], [], "b"],
  ["another when this node is full", [node("a", full), node("b")], [], "b"],
  ["another when this node runs no workloads", [node("a", closed), node("b")], [], "b"],
  [
    "the one with most free memory",
    [node("a", full), node("b", { usedMb: 800 }), node("c", { memoryMb: 2000, usedMb: 1700 }), node("d", away)],
    [],
    "c",
  ],
  ["neither the drained nor the lost", [node("a", full), node("b", drained), node("c", away), node("d")], [], "d"],
  ["this node when all are full", [node("a", full), node("b", full)], [], "a"],
  ["a full node when this node is drained", [node("a", drained), node("b", full)], [], "b"],
  ["this node while no machine is ready", [node("a", closed), node("b", closed)], [], "a"],
  ["this node, whatever its own entry says of its life", [node("a", away), node("b", drained)], [], "a"],
  ["none", [node("a", drained), node("b", away)], [], /name-of-a is drained, name-of-b is away/],
];

for (const [title, nodes, needs, expected] of ROWS)
  test(`placed: ${title}`, () => {
    const place = (): string => placementOf({ nodes, needs, self: "a", fullShare: 0.9 });
    if (typeof expected === "string") assert.equal(place(), expected);
    else assert.throws(place, { message: expected });
  });

test("placed: where no node counts as full, the node that took the request", () => {
  assert.equal(
    placementOf({ nodes: [node("a", { usedMb: 1000 }), node("b")], needs: [], self: "a", fullShare: 1 }),
    "a",
  );
});
