import { notFound } from "../../contract/errors.ts";
import { modelRequests as answerRequests } from "../../metering/model-requests.ts";
import { modelUsage as answerUsage } from "../../metering/model-usage.ts";
import { ofKind } from "../../store/resources/resource.ts";
import { type Call, type Implementation, implement, type Platform, workspaceOf } from "../port.ts";
import { type Model, model } from "./kind.ts";
import { modelBudget, modelRequests, modelUsage, REQUESTS_MAX, USAGE_LIMIT_MAX } from "./operations.ts";

export const modelHandlers: readonly Implementation[] = [
  implement(modelUsage, async (call, { store, prices, clock }) => {
    const limit = Math.min(call.query.limit, USAGE_LIMIT_MAX);
    const deps = { ledger: store.usage, book: prices, cursors: store.cursors, clock };
    const answer = await answerUsage(deps, workspaceOf(call), { ...call.query, limit });
    return { ...answer, data: await withKeyNames(answer.data, store) };
  }),

  implement(modelRequests, async (call, deps) => {
    const { store, clock } = deps;
    const limit = Math.min(call.query.limit, REQUESTS_MAX);
    const { accountId, name: workspace } = workspaceOf(call);
    const { uid } = await modelOf(call, deps);
    const answer = await answerRequests(
      { ledger: store.usage, cursors: store.cursors, clock },
      { accountId, workspace, uid },
      { ...call.query, limit },
    );
    return { ...answer, data: await withKeyNames(answer.data, store) };
  }),

  implement(modelBudget, async (call, deps) => {
    const { name: workspace } = workspaceOf(call);
    const { spec } = await modelOf(call, deps);
    const names = spec.policies ?? [];
    const scope = { workspace, kind: "policy", parent: "" };
    const policies = await Promise.all(names.map((name) => deps.store.resources.get(scope, name)));
    const { keyId, subject, subjectType } = call.caller;
    const caller = keyId === null ? { type: subjectType, id: subject } : { type: "api_key", id: keyId };
    const found = policies.filter((policy) => policy !== null);
    return { policies: await deps.providers.budgetsLeft(workspace, found, caller) };
  }),
];

async function modelOf(call: Pick<Call, "params" | "workspace" | "operation">, { store }: Platform): Promise<Model> {
  const name = call.params.modelName ?? "";
  const found = await store.resources.get({ workspace: workspaceOf(call).name, kind: model.name, parent: "" }, name);
  if (!found) throw notFound(`model '${name}'`);
  return ofKind(model, found);
}

type Keyed = { key?: { type: string; id: string } | null };

/** With the names of the API keys that still exist. */
async function withKeyNames<Entry extends Keyed>(entries: readonly Entry[], { keys }: Platform["store"]) {
  const ids = entries.flatMap(({ key }) => (key?.type === "api_key" ? [key.id] : []));
  const names = await keys.keyNames([...new Set(ids)]);
  return entries.map((entry) => {
    const name = names.get(entry.key?.id ?? "");
    return name === undefined || !entry.key ? entry : { ...entry, key: { ...entry.key, name } };
  });
}
