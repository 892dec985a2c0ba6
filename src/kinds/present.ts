/** A resource on its way out: secrets masked, internals left behind, addresses and computed members added. */
import type { z } from "zod";
import type { Kind } from "../contract/kind.ts";
import { restoreSecrets } from "../contract/secret-fields.ts";
import { toIso } from "../lib/clock.ts";
import type { Resource } from "../store/resource.ts";
import type { Behaviour, Deps, PresentContext, Wire } from "./port.ts";

export interface PresentOptions extends Omit<PresentContext, "deps"> {
  showSecrets?: boolean;
  /** The workspace that reads; it may have borrowed the resource from another. */
  viewer?: string;
}

export function toWire(behaviour: Behaviour, resource: Resource, options: PresentOptions, deps: Deps): Wire {
  const { kind } = behaviour;
  const viewer = options.viewer ?? resource.workspace;
  const { spec } = resource; // read for this answer alone, so it may be changed
  if (options.showSecrets) restoreSecrets({ spec }, kind.secrets, deps.store.resources.secretsOf(resource));
  const wire: Wire = {
    metadata: {
      name: resource.name,
      ...resource.metadata,
      uid: resource.uid,
      workspace: viewer,
      ...(viewer === resource.workspace ? {} : { sharedFromWorkspace: resource.workspace }),
      plan: deps.settings.plan,
      url: addressOf(kind, resource, options.parents, deps),
      createdAt: toIso(resource.createdAt),
      updatedAt: toIso(resource.updatedAt),
      createdBy: resource.createdBy,
      updatedBy: resource.updatedBy,
    },
    spec,
    ...(kind.state ? { state: declaredState(kind.state, resource.state) } : {}),
    ...(kind.initialStatus
      ? { status: resource.status ?? kind.initialStatus, ...(options.inList ? {} : { events: resource.events }) }
      : {}),
  };
  behaviour.present?.(wire, resource, { deps, parents: options.parents, inList: options.inList });
  return wire;
}

/** The observed state also holds what only the platform may know; a kind declares what others see of it. */
function declaredState(schema: z.ZodType, state: Record<string, unknown>): Record<string, unknown> {
  const shape = "shape" in schema ? Object.keys(schema.shape as object) : [];
  return Object.fromEntries(shape.filter((key) => state[key] !== undefined).map((key) => [key, state[key]]));
}

function addressOf(kind: Kind, resource: Resource, parents: readonly Resource[], deps: Deps): string {
  const names = [...parents.map((parent) => parent.name), resource.name];
  return `${deps.settings.publicUrl}/v0${kind.itemPath.replace(/\{\w+\}/g, () => encodeURIComponent(names.shift() ?? ""))}`;
}
