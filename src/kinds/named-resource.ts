import { notFound, PlatformError } from "../contract/errors.ts";
import type { Kind } from "../contract/kind.ts";
import type { Resource } from "../store/resources/resource.ts";
import { kindsAsked } from "./listable.ts";
import { isOver, lookUp } from "./place.ts";
import { type Call, type Platform, workspaceOf } from "./port.ts";
import { requireEntry } from "./sandbox/kept.ts";

/** The resource that a query names by kind and name. Refuses kinds that the caller may not list, and parts of others. */
export async function namedResource(
  call: Pick<Call<{ kind: string; name: string }>, "query" | "caller" | "role" | "workspace" | "operation">,
  deps: Platform,
): Promise<{ kind: Kind; resource: Resource }> {
  const { kind: asked, name } = call.query;
  const [kind] = kindsAsked(asked, call.caller);
  if (!kind || kind.within)
    throw new PlatformError("invalid_parameter", "kind: must be a kind at the top of a workspace.");
  const { name: workspace } = workspaceOf(call);
  const resource = await lookUp(kind, { workspace, kind: kind.name, parent: "" }, name, deps);
  if (!resource || isOver(kind, resource, deps)) throw notFound(`${kind.name} '${name}'`);
  requireEntry(resource, call);
  return { kind, resource };
}
