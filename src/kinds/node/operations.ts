/**
 * The servers on this database: each is a node, with the machine that it runs workloads on. They are for admins of the
 * first account, which the operator made.
 */
import { z } from "zod";
import { defineOperation } from "../../contract/operation.ts";

export const nodeShape = z.object({
  id: z.string(),
  name: z.string(),
  status: z.enum(["live", "lost"]).describe("lost: not heard of for BERTH_NODE_LOST_AFTER seconds."),
  drained: z.boolean().describe("It gets no new workloads."),
  isSelf: z.boolean().describe("It is the server that answers this request."),
  address: z.string().optional().describe("Where other servers reach it."),
  version: z.string(),
  driver: z.string(),
  capabilities: z.array(z.string()),
  cpus: z.int(),
  memoryMb: z.int(),
  usedMb: z.int().describe("Memory of the machine that is in use."),
  resources: z.record(z.string(), z.int()).describe("How many resources of each kind it has."),
  startedAt: z.string(),
  heartbeatAt: z.string(),
});

const drainShape = nodeShape.extend({
  moves: z.int().describe("Agents, functions, applications and jobs that go on at other nodes from now on."),
  stays: z
    .array(z.object({ kind: z.string(), workspace: z.string(), name: z.string() }))
    .describe(
      "Resources that stay on the node, because their files are there or no other node takes them: the first 100.",
    ),
  staysCount: z.int().describe("How many resources stay."),
});

const common = { kind: "node", tenancy: "account", role: "admin" } as const;
const ITEM = "/nodes/{node}";

export const nodeList = defineOperation({
  ...common,
  id: "nodeList",
  method: "GET",
  path: "/nodes",
  summary: "List the servers of this platform",
  scope: "nodes:list",
  response: z.array(nodeShape),
  verb: "list",
});

export const nodeGet = defineOperation({
  ...common,
  id: "nodeGet",
  method: "GET",
  path: ITEM,
  summary: "Read one node, by its id or its name",
  scope: "nodes:get",
  response: nodeShape,
  verb: "get",
});

export const nodeDrain = defineOperation({
  ...common,
  id: "nodeDrain",
  method: "POST",
  path: `${ITEM}/drain`,
  summary: "Move workloads without files off a node and give it no new ones; sandboxes and volumes stay",
  scope: "nodes:update",
  response: drainShape,
});

export const nodeUndrain = defineOperation({
  ...common,
  id: "nodeUndrain",
  method: "POST",
  path: `${ITEM}/undrain`,
  summary: "Give a drained node new workloads again",
  scope: "nodes:update",
  response: nodeShape,
});

export const nodeRemove = defineOperation({
  ...common,
  id: "nodeRemove",
  method: "DELETE",
  path: ITEM,
  summary: "Remove a node that never returns",
  scope: "nodes:delete",
  query: z.object({
    force: z
      .stringbool()
      .optional()
      .describe(
        "Also when sandboxes, volumes, drives and snapshots are there: they are deleted, because their files are lost.",
      ),
  }),
  response: nodeShape,
});

export const findingShape = z.object({
  check: z.string().describe("What was looked at: disk, database, isolation …"),
  state: z.enum(["ok", "warning", "problem"]),
  says: z.string(),
  next: z.string().optional().describe("What the operator should do about it."),
  command: z.string().optional().describe("The command that does it, where one command is enough."),
});

export const nodeFindings = defineOperation({
  ...common,
  id: "nodeFindings",
  method: "GET",
  path: `${ITEM}/findings`,
  summary: "Check what a server needs and finds on its machine, as `berth doctor` does",
  scope: "nodes:get",
  response: z.array(findingShape),
});

export const nodeOperations = [nodeList, nodeGet, nodeDrain, nodeUndrain, nodeRemove, nodeFindings];
