/** Threads: the messages of a conversation with an agent, under the id that the client sent with its requests. */
import { z } from "zod";
import { pageMeta } from "../../contract/list-query.ts";
import { defineOperation, type Operation } from "../../contract/operation.ts";
import { agent } from "../agent/kind.ts";

/** Messages added by one request. */
const APPEND_MAX = 100;
const BODY_BYTES_MAX = 1024 * 1024;
export const READ_DEFAULT = 100;

const shared = { tenancy: "workspace", role: "member", kind: agent.name } as const;
const collection = `${agent.itemPath}/threads`;
const item = `${collection}/{threadId}`;

const message = z.record(z.string(), z.unknown());
const summary = z.object({
  id: z.string(),
  messageCount: z.int(),
  createdAt: z.string().optional(),
  updatedAt: z.string().optional(),
  expiresAt: z.string().optional().describe("Every message puts it off."),
});

export const threadList = defineOperation({
  ...shared,
  id: "agentThreadList",
  method: "GET",
  path: collection,
  summary: "List the threads of an agent",
  scope: "threads:list",
  query: z.object({ cursor: z.string().optional(), limit: z.coerce.number().int().min(1).optional() }),
  response: z.object({ data: z.array(summary), meta: pageMeta }),
  paged: true,
});

export const threadGet = defineOperation({
  ...shared,
  id: "agentThreadGet",
  method: "GET",
  path: item,
  summary: "Read the newest messages of a thread; one that was never written to is empty",
  scope: "threads:get",
  query: z.object({
    limit: z.coerce.number().int().min(1).optional().describe(`The newest; default ${READ_DEFAULT}, at most 1000.`),
  }),
  response: summary.extend({ messages: z.array(message).describe("Oldest first.") }),
});

export const threadAppend = defineOperation({
  ...shared,
  id: "agentThreadAppend",
  method: "POST",
  path: `${item}/messages`,
  summary: "Add messages to the end of a thread",
  scope: "threads:update",
  body: z.object({ messages: z.array(message).min(1).max(APPEND_MAX) }),
  bodyBytesMax: BODY_BYTES_MAX,
  response: summary,
});

export const threadDelete = defineOperation({
  ...shared,
  id: "agentThreadDelete",
  method: "DELETE",
  path: item,
  summary: "Forget a thread",
  scope: "threads:delete",
  response: summary.pick({ id: true }),
});

export const threadOperations: readonly Operation[] = [threadList, threadGet, threadAppend, threadDelete];
