import { modelUsage as answerUsage } from "../../metering/model-usage.ts";
import { type Implementation, implement, workspaceOf } from "../port.ts";
import { modelUsage, USAGE_LIMIT_MAX } from "./operations.ts";

export const modelHandlers: readonly Implementation[] = [
  implement(modelUsage, async (call, { store, prices, clock }) => {
    const limit = Math.min(call.query.limit, USAGE_LIMIT_MAX);
    const deps = { ledger: store.usage, book: prices, cursors: store.cursors, clock };
    const answer = await answerUsage(deps, workspaceOf(call), { ...call.query, limit });
    const keyIds = answer.data.flatMap(({ key }) => (key?.type === "api_key" ? [key.id] : []));
    const names = await store.keys.keyNames([...new Set(keyIds)]);
    const named = <Key extends { id: string }>(key: Key) => {
      const name = names.get(key.id);
      return name === undefined ? key : { ...key, name };
    };
    return { ...answer, data: answer.data.map((entry) => (entry.key ? { ...entry, key: named(entry.key) } : entry)) };
  }),
];
