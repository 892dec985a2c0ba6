import { type Implementation, implement, workspaceOf } from "../port.ts";
import { quotaList } from "./operations.ts";
import { quotaWords } from "./quotas.ts";

export const quotaHandlers: readonly Implementation[] = [
  implement(quotaList, async (call, { store, settings }) => {
    const { name: workspace } = workspaceOf(call);
    const counts = await store.resources.countsIn(workspace);
    const quotas = Object.entries(quotaWords()).map(([resource, kind]) => {
      const limit = settings.quotas[kind] ?? null;
      const used = counts[kind] ?? 0;
      return { resource, limit, used, remaining: limit === null ? null : Math.max(0, limit - used) };
    });
    return { workspace, quotas: quotas.sort((a, b) => (a.resource < b.resource ? -1 : 1)) };
  }),
];
