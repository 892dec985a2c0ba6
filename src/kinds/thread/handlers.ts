import { invalidField, notFound, PlatformError } from "../../contract/errors.ts";
import { LIMIT_DEFAULT, LIMIT_MAX } from "../../contract/list-query.ts";
import { toIso } from "../../lib/time/clock.ts";
import type { ThreadRow } from "../../store/database/schema.ts";
import type { Resource } from "../../store/resources/resource.ts";
import { THREAD_MESSAGES_MAX } from "../../store/threads.ts";
import { agent as agentKind } from "../agent/kind.ts";
import { type Call, type Implementation, implement, type Platform, workspaceOf } from "../port.ts";
import { READ_DEFAULT, threadAppend, threadDelete, threadGet, threadList } from "./operations.ts";
import { THREAD_ID } from "./thread-id.ts";

export const threadHandlers: readonly Implementation[] = [
  implement(threadList, async (call, deps) => {
    const { uid } = await agentOf(call, deps);
    const limit = Math.min(call.query.limit ?? LIMIT_DEFAULT, LIMIT_MAX);
    const { items, hasMore, nextCursor } = await deps.store.threads.list(uid, {
      limit,
      cursor: call.query.cursor || null,
    });
    return { data: items.map(toWire), meta: { hasMore, nextCursor, total: await deps.store.threads.countOf(uid) } };
  }),

  implement(threadGet, async (call, deps) => {
    const { uid } = await agentOf(call, deps);
    const id = threadIdOf(call);
    const limit = Math.min(call.query.limit ?? READ_DEFAULT, THREAD_MESSAGES_MAX);
    const found = await deps.store.threads.read(uid, id, limit);
    return found ? { ...toWire(found.thread), messages: found.messages } : { id, messageCount: 0, messages: [] };
  }),

  implement(threadAppend, async (call, deps) => {
    const { uid } = await agentOf(call, deps);
    const { messages } = call.body;
    return toWire(await deps.store.threads.append(uid, threadIdOf(call), messages, deps.settings.threadsKeptMs));
  }),

  implement(threadDelete, async (call, deps) => {
    const { uid } = await agentOf(call, deps);
    const id = threadIdOf(call);
    if (!(await deps.store.threads.remove(uid, id))) throw notFound(`Thread '${id}'`);
    return { id };
  }),
];

type AgentCall = Pick<Call, "workspace" | "operation" | "params" | "caller">;

async function agentOf(call: AgentCall, deps: Platform): Promise<Resource> {
  const { agentName = "" } = call.params;
  const scope = { workspace: workspaceOf(call).name, kind: agentKind.name, parent: "" };
  const agent = await deps.store.resources.get(scope, agentName);
  if (!agent || agent.deletedAt !== null) throw notFound(`Agent '${agentName}'`);
  await refuseForeign(call, agent, deps);
  return agent;
}

/** A workload may read only its own threads. */
async function refuseForeign({ caller }: AgentCall, agent: Resource, { store }: Platform): Promise<void> {
  if (caller.subjectType !== "workload") return;
  const account = await store.keys.findServiceAccountAcrossWorkspaces(caller.subject);
  if (account?.workload === agent.uid) return;
  throw new PlatformError(
    "forbidden",
    `The threads of agent '${agent.name}' are its own: a workload reads those of itself.`,
  );
}

function threadIdOf({ params: { threadId = "" } }: AgentCall): string {
  if (!THREAD_ID.test(threadId))
    throw invalidField("threadId", "must be 1 to 256 printable characters, and not `.` or `..`");
  return threadId;
}

const toWire = (row: ThreadRow) => ({
  id: row.thread_id,
  messageCount: row.next_seq - row.first_seq,
  createdAt: toIso(row.created_at),
  updatedAt: toIso(row.updated_at),
  expiresAt: toIso(row.expires_at),
});
