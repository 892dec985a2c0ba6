import type { z } from "zod";
import { toIso } from "../../lib/time/clock.ts";
import type { AuditFilter, AuditLine } from "../../store/audit.ts";
import type { Store } from "../../store/store.ts";
import { type Implementation, implement, workspaceOf } from "../port.ts";
import { accountAudit, auditList, auditVerify, LIMIT_DEFAULT, LIMIT_MAX } from "./operations.ts";

type Query = z.output<NonNullable<typeof auditList.query>>;
type Page = z.input<typeof auditList.response>;

export const auditHandlers: readonly Implementation[] = [
  implement(auditList, async (call, { store }) => list(store, call.query, { workspace: workspaceOf(call).name })),
  implement(accountAudit, async ({ query, params }, { store }) =>
    list(store, query, { accountId: params.accountId ?? "", workspace: query.workspace }),
  ),
  implement(auditVerify, async (_call, { store }) => {
    const { firstSeq, lastSeq, ...check } = await store.audit.check();
    return { ...check, firstId: firstSeq, lastId: lastSeq };
  }),
];

async function list(store: Store, query: Query, whose: Pick<AuditFilter, "workspace" | "accountId">): Promise<Page> {
  const limit = Math.min(query.limit ?? LIMIT_DEFAULT, LIMIT_MAX);
  const { actor, action, outcome, startTime, endTime, cursor } = query;
  const lines = await store.audit.list({
    ...whose,
    actor,
    action,
    outcome,
    from: startTime === undefined ? undefined : Date.parse(startTime),
    to: endTime === undefined ? undefined : Date.parse(endTime),
    beforeSeq: cursor === undefined ? undefined : Number(cursor),
    limit: limit + 1,
  });
  const shown = lines.slice(0, limit);
  const hasMore = lines.length > limit;
  return {
    data: shown.map(toWire),
    meta: { hasMore, nextCursor: hasMore ? String(shown.at(-1)?.seq ?? "") : "" },
  };
}

const toWire = (line: AuditLine): Page["data"][number] => ({
  id: line.seq,
  time: toIso(line.at),
  actor: {
    id: line.actor,
    type: line.actorType,
    name: line.actorName,
    authMethod: line.authMethod,
    ...(line.keyId === null ? {} : { keyId: line.keyId }),
  },
  action: line.action,
  target: line.target,
  ...(line.workspace === null ? {} : { workspace: line.workspace }),
  ...(line.accountId === null ? {} : { accountId: line.accountId }),
  outcome: line.outcome,
  status: line.status,
  sourceAddress: line.sourceAddress,
  requestId: line.requestId,
  hash: line.hash,
});
