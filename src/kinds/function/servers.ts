/** Rules of a function that serves the tools of other functions. */
import { invalidField } from "../../contract/errors.ts";
import { serversOf } from "../../contract/tools/tool-rules.ts";
import type { Input, PrepareContext } from "../port.ts";
import { workspaceOf } from "../port.ts";
import { type FunctionResource, functionKind } from "./kind.ts";

/** Members that say how code runs; a function without code has no use for them. */
const OF_CODE = ["volumes", "drives", "integrationConnections", "network", "vpc", "triggers"] as const;

export async function checkServers(
  { metadata, spec }: Input<FunctionResource>,
  { call, deps }: PrepareContext,
): Promise<void> {
  const servers = serversOf({ kind: functionKind.name, spec });
  if (servers === null) return;
  if (call.query.upload === true || spec.runtime?.image)
    throw invalidField("spec.servers", "a function serves other functions or has code of its own, not both");
  for (const member of OF_CODE)
    if (Array.isArray(spec[member]) ? spec[member].length > 0 : spec[member] !== undefined)
      throw invalidField(`spec.${member}`, "a function that serves other functions has no code that would use it");
  for (const [index, { name }] of servers.entries()) {
    if (name === metadata.name) throw invalidField(`spec.servers[${index}].name`, "a function does not serve itself");
    const place = { workspace: workspaceOf(call).name, kind: functionKind.name, parent: "" };
    const found = await deps.store.resources.get(place, name);
    if (found && serversOf(found) !== null)
      throw invalidField(`spec.servers[${index}].name`, "serves other functions itself: name those");
  }
}
