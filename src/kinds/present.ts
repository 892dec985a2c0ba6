/** Renders a resource for an answer: masks secrets, removes internal members, adds addresses and computed members. */
import type { z } from "zod";
import { WORKLOADS, type WorkloadKind, workloadUrl } from "../contract/addresses.ts";
import type { Caller } from "../contract/caller.ts";
import { hasLogsScope, withoutOutput } from "../contract/crash-output.ts";
import type { Event } from "../contract/fields.ts";
import { hostLabelOf } from "../contract/held-words.ts";
import type { Kind } from "../contract/kind.ts";
import { restoreSecrets } from "../contract/secret-fields.ts";
import type { Soon } from "../lib/soon.ts";
import { toIso } from "../lib/time/clock.ts";
import type { Resource } from "../store/resources/resource.ts";
import type { Behaviour, Platform, PresentContext, Wire } from "./port.ts";

export interface PresentOptions extends Pick<PresentContext, "parents"> {
  inList?: boolean;
  /** Leaves the spec out. */
  isSummary?: boolean;
  /** The caller asked for clear-text secrets and is allowed to read them. */
  showSecrets?: boolean;
  /** Keys of secrets that only this answer shows in clear text. */
  reveal?: ReadonlySet<string>;
  /** The workspace that reads; differs from the owner for a borrowed resource. */
  viewer?: string;
  /** The reader. Events quote logs only to callers that may read logs. */
  caller?: Pick<Caller, "scopes">;
  /** The result of the kind's `gather`. */
  gathered?: unknown;
}

export function presentOne(
  behaviour: Behaviour,
  resource: Resource,
  options: PresentOptions,
  deps: Platform,
): Soon<unknown> {
  if (!behaviour.gather) return present(behaviour, resource, options, deps);
  return presentAll(behaviour, [resource], options, deps).then(([one]) => one);
}

export async function presentAll(
  behaviour: Behaviour,
  resources: readonly Resource[],
  options: PresentOptions,
  deps: Platform,
): Promise<unknown[]> {
  const inList = options.inList ?? false;
  const gathered = await behaviour.gather?.(resources, { deps, inList });
  return resources.map((resource) => present(behaviour, resource, { ...options, gathered }, deps));
}

function present(behaviour: Behaviour, resource: Resource, options: PresentOptions, deps: Platform): unknown {
  const { flat } = behaviour.kind;
  const wire = toWire(behaviour, resource, options, deps);
  return flat ? flattened(wire, flat.name) : wire;
}

export function toWire(behaviour: Behaviour, resource: Resource, options: PresentOptions, deps: Platform): Wire {
  const { kind } = behaviour;
  const viewer = options.viewer ?? resource.workspace;
  const { spec } = resource; // parsed for this answer only, so it may be changed
  showSecrets(kind, resource, options, deps);
  const wire: Wire = {
    metadata: {
      name: resource.name,
      ...resource.metadata,
      uid: resource.uid,
      workspace: viewer,
      sharedFromWorkspace: viewer === resource.workspace ? undefined : resource.workspace,
      plan: deps.settings.plan,
      url: addressOf(kind, resource, options.parents, deps),
      createdAt: toIso(resource.createdAt),
      updatedAt: toIso(resource.updatedAt),
      createdBy: resource.createdBy,
      updatedBy: resource.updatedBy,
      node: nodeOf(kind, resource, deps),
    },
    spec,
  };
  if (kind.state) wire.state = declaredState(kind.state, resource.state);
  if (kind.initialStatus) {
    wire.status = resource.status ?? kind.initialStatus;
    if (!options.inList) wire.events = eventsFor(options.caller, resource.events);
  }
  const { parents, gathered, inList = false } = options;
  behaviour.present?.(wire, resource, { deps, parents, gathered, inList });
  if (options.isSummary) wire.spec = {};
  return wire;
}

/** The name of the resource's node. A platform of one machine has nothing to tell apart. */
const nodeOf = (kind: Kind, { node }: Resource, { nodes }: Platform): string | undefined =>
  kind.placed && node !== null && nodes.list().length > 1 ? nodes.nameOf(node) : undefined;

const eventsFor = (caller: PresentOptions["caller"], events: Event[]): Event[] =>
  caller === undefined || hasLogsScope(caller)
    ? events
    : events.map((event) =>
        event.message === undefined ? event : { ...event, message: withoutOutput(event.message) },
      );

function showSecrets(kind: Kind, resource: Resource, options: PresentOptions, deps: Platform): void {
  const all = options.showSecrets || kind.secretsShown === "always";
  if (!all && !options.reveal?.size) return;
  const stored = Object.entries(deps.store.resources.secretsOf(resource));
  const shown = Object.fromEntries(stored.filter(([key]) => all || options.reveal?.has(key)));
  const paths = kind.secrets.filter((path) => !kind.secretsWriteOnly?.includes(path));
  restoreSecrets({ spec: resource.spec }, paths, shown);
}

const flattened = ({ metadata, spec }: Wire, nameKey: string): Record<string, unknown> => ({
  [nameKey]: metadata.name,
  ...spec,
  createdAt: metadata.createdAt,
});

/** Shows only declared members of the observed state; the others are internal to the platform. */
function declaredState(schema: z.ZodType, state: Record<string, unknown>): Record<string, unknown> {
  const shape = "shape" in schema ? Object.keys(schema.shape as object) : [];
  return Object.fromEntries(shape.filter((key) => state[key] !== undefined).map((key) => [key, state[key]]));
}

/** A workload's address is where it answers requests; any other resource's is its URL in the management API. */
function addressOf(kind: Kind, resource: Resource, parents: readonly Resource[], deps: Platform): string {
  const { publicUrl, domain, region } = deps.settings;
  if (Object.hasOwn(WORKLOADS, kind.name)) {
    return workloadUrl(
      { publicUrl, domain: domain ?? undefined },
      {
        kind: kind.name as WorkloadKind,
        workspace: resource.workspace,
        name: resource.name,
        region: typeof resource.spec.region === "string" ? resource.spec.region : region,
        label: hostLabelOf(resource),
      },
    );
  }
  const parts = itemPathParts.get(kind) ?? kind.itemPath.split(/\{\w+\}/);
  itemPathParts.set(kind, parts);
  let url = `${publicUrl}/v0${parts[0]}`;
  for (let at = 1; at < parts.length; at += 1)
    url += encodeURIComponent((parents[at - 1] ?? resource).name) + parts[at];
  return url;
}

/** The fixed segments between the names in a kind's path. */
const itemPathParts = new WeakMap<Kind, string[]>();
