import { notFound, PlatformError } from "../../contract/errors.ts";
import { toolRulesOf } from "../../contract/tools/tool-rules.ts";
import { afterApproval, stateOfTools, type ToolState } from "../../contract/tools/tool-state.ts";
import { ownValue } from "../../lib/own-value.ts";
import { toIso } from "../../lib/time/clock.ts";
import type { Resource } from "../../store/resources/resource.ts";
import { type Call, type Implementation, implement, type Platform, workspaceOf } from "../port.ts";
import { functionKind } from "./kind.ts";
import { functionApproveTools, functionTools } from "./operations.ts";

export const functionHandlers: readonly Implementation[] = [
  implement(functionTools, async (call, deps) => toolListOf(await find(call, deps))),

  implement(functionApproveTools, async (call, deps) => {
    const { uid, workspace } = await find(call, deps);
    const updated = await deps.store.resources.update(workspace, uid, (current) => {
      const state = stateOfTools(current.state);
      const chosen = chosenOf(state, call.body.tools);
      if (chosen.length === 0) return null;
      const message = `${chosen.length} tool definitions were approved.`;
      return {
        state: { ...current.state, tools: afterApproval(state, chosen) },
        event: { type: "tools_approved", message },
        actor: call.caller.displayName,
      };
    });
    if (!updated) throw notFound(`function '${call.params[functionKind.param]}'`);
    return toolListOf(updated);
  }),
];

function chosenOf({ withheld }: ToolState, asked: readonly { name: string; hash: string }[]) {
  return asked.map(({ name, hash }) => {
    const found = ownValue(withheld, name);
    if (!found) throw new PlatformError("not_found", `No definition of a tool ${JSON.stringify(name)} is withheld.`);
    if (hash !== found.hash)
      throw new PlatformError("conflict", `The definition of ${JSON.stringify(name)} has changed again: look at it.`);
    return { name, hash };
  });
}

function toolListOf(resource: Resource) {
  const { approved, withheld, pinned } = stateOfTools(resource.state);
  return {
    pins: toolRulesOf(resource)?.pins?.mode ?? null,
    pinnedRevision: pinned,
    approved: Object.entries(approved).map(([name, hashes]) => ({ name, hashes: [...hashes] })),
    withheld: Object.entries(withheld).map(([name, { hash, definition, since }]) => ({
      ...{ name, hash, definition, since: toIso(since) },
      why: Object.hasOwn(approved, name) ? ("changed" as const) : ("new" as const),
    })),
  };
}

async function find(call: Call, { store }: Platform): Promise<Resource> {
  const name = call.params[functionKind.param] ?? "";
  const place = { workspace: workspaceOf(call).name, kind: functionKind.name, parent: "" };
  const found = await store.resources.get(place, name);
  if (!found || found.deletedAt !== null) throw notFound(`function '${name}'`);
  return found;
}
