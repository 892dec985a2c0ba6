/** A fork: a new sandbox, or an application, with the image, memory, environment and files of a sandbox. */
import type { z } from "zod";
import { notFound, PlatformError } from "../../contract/errors.ts";
import * as fields from "../../contract/fields.ts";
import { linksOf } from "../../contract/references.ts";
import { uuidv7 } from "../../lib/ids.ts";
import { ofKind, type Resource } from "../../store/resources/resource.ts";
import { requireGrantable } from "../drive/grants.ts";
import { find } from "../place.ts";
import { type Call, type Implementation, implement, type Platform } from "../port.ts";
import { nodeOfSandbox } from "../sandbox/its-node.ts";
import { type Sandbox, sandbox as sandboxKind } from "../sandbox/kind.ts";
import { startOf } from "../sandbox/start.ts";
import type { ForkOrigin } from "../sandbox/state.ts";
import { forkToApplication } from "./application-fork.ts";
import { snapshot as snapshotKind } from "./kind.ts";
import { requireMemory } from "./memory.ts";
import { sandboxFork, snapshotRestore } from "./operations.ts";
import { newSnapshotId, phaseOf, reasonOf } from "./phase.ts";
import { settled } from "./settled.ts";

/** A fork may take over the name of a sandbox in one of these states. */
const ENDED = new Set(["FAILED", "TERMINATED"]);

type ForkCall = Call<Record<string, unknown>, z.output<NonNullable<typeof sandboxFork.body>>>;

const fork = implement(sandboxFork, async (call, deps) => {
  const { resource: source } = await find(sandboxKind, call, deps);
  const { body } = call;
  const name = body.targetName ?? body.target_name;
  if (name === undefined) throw new PlatformError("invalid_field", "targetName: is required.");
  const type = body.targetType ?? body.type ?? "sandbox";
  if (source.retired || source.deletedAt !== null || source.status !== "DEPLOYED")
    throw new PlatformError("conflict", `sandbox '${source.name}' is ${source.status} and cannot be forked.`);
  if (type === "application" && (body.withMemory || body.copies !== undefined)) throw onlySandboxes();
  const names = body.copies === undefined ? [name] : copyNames(name, body.copies);
  if (type === "sandbox") for (const each of names) await refuseTaken(source.workspace, each, deps);
  if (body.withMemory) await requireMemory(source, deps.here.driver);
  const snapshotId = body.snapshotId ?? (await takenNow(source, call, deps));
  const origin = await originOf(source, snapshotId, body.withMemory, deps);
  const { snapshot } = origin;
  if (type === "application") {
    await forkToApplication({ source, name, snapshot }, call, deps.here);
    return { name, type, snapshotId: snapshot };
  }
  for (const each of names) await requireGrantable({ ...source, name: each }, source, call, deps);
  const make = async (each: string, uid: string): Promise<void> => {
    const made = await insert(source, { name: each, uid, memory: body.memory }, origin, call, deps);
    await settled(made, (now) => now?.status !== "DEPLOYING", deps);
  };
  if (body.copies === undefined) {
    await make(name, call.uid());
    return { name, type, snapshotId: snapshot };
  }
  const ended = await Promise.allSettled(names.map((each) => make(each, uuidv7(deps.clock.now()))));
  return { name, type, snapshotId: snapshot, copies: names.map((each, index) => outcomeOf(each, ended[index])) };
});

const copyNames = (target: string, count: number): string[] =>
  Array.from({ length: count }, (_, index) => fields.name.parse(`${target}-${index + 1}`));

/** Each copy is made for itself: one that fails takes no other with it. */
const outcomeOf = (name: string, ended: PromiseSettledResult<void> | undefined) =>
  ended?.status === "rejected"
    ? {
        name,
        status: isLate(ended.reason) ? ("DEPLOYING" as const) : ("FAILED" as const),
        error: reasonOf(ended.reason),
      }
    : { name, status: "DEPLOYED" as const };

/** It still starts, and nobody waits for it any longer. */
const isLate = (error: unknown): boolean => error instanceof PlatformError && error.code === "timeout";

const onlySandboxes = (): PlatformError =>
  new PlatformError("unprocessable", "withMemory and copies make sandboxes; an application starts its program anew.");

/** The sandbox is ended with its files and made again from the snapshot, as a fork is. */
const restore = implement(snapshotRestore, async (call, deps) => {
  const { resource: box } = await find(sandboxKind, call, deps);
  const { workspace, uid, name } = box;
  if (box.retired || box.deletedAt !== null || !RESTORABLE.has(box.status ?? ""))
    throw new PlatformError("conflict", `sandbox '${name}' is ${box.status} and cannot be restored.`);
  const { withMemory } = call.body ?? {};
  const origin = await originOf(box, call.params.snapshotId ?? "", withMemory, deps);
  if (origin.memory) await requireMemory(box, deps.here.driver);
  await deps.store.resources.update(workspace, uid, ({ state }) => ({
    state: { ...state, fork: origin, restoring: true, deployed: undefined },
    status: "DEPLOYING",
    event: { type: "restoring", message: `Asked back to snapshot ${origin.snapshot} by ${call.caller.displayName}.` },
  }));
  await settled(box, (now) => now?.status !== "DEPLOYING", deps);
  return { name, snapshotId: origin.snapshot };
});

const RESTORABLE = new Set(["DEPLOYED", "FAILED"]);

export const forkHandlers: readonly Implementation[] = [
  { ...fork, node: nodeOfSandbox },
  { ...restore, node: nodeOfSandbox },
];

/** Checked before the files are copied. A create that takes the name meanwhile is caught by the insert. */
async function refuseTaken(workspace: string, name: string, { store }: Platform): Promise<void> {
  const found = await store.resources.get({ workspace, kind: sandboxKind.name, parent: "" }, name);
  if (!found || found.retired || ENDED.has(found.status ?? "")) return;
  throw new PlatformError("already_exists", `sandbox '${name}' exists already. Choose another name.`);
}

/** Saves the current files as an ordinary snapshot, which can be forked again and deleted. */
async function takenNow(
  source: Resource,
  { caller: { displayName: actor }, body: { withMemory } }: ForkCall,
  deps: Platform,
): Promise<string> {
  const { resource } = await deps.store.resources.create({
    workspace: source.workspace,
    kind: snapshotKind.name,
    parent: source.uid,
    uid: uuidv7(deps.clock.now()),
    name: newSnapshotId(),
    metadata: {},
    spec: withMemory ? { memory: true } : {},
    secrets: {},
    state: {},
    status: null,
    events: [{ type: "created", message: `Taken for a fork by ${actor}.` }],
    revision: false,
    actor,
    settled: true,
    node: source.node,
  });
  await settled(resource, (now) => now === null || phaseOf(ofKind(snapshotKind, now)) !== "pending", deps);
  const taken = await deps.store.resources.getByUid(source.workspace, resource.uid);
  if (taken && phaseOf(ofKind(snapshotKind, taken)) === "failed") {
    await deps.store.resources.delete(source.workspace, resource.uid);
    throw new PlatformError("unprocessable", String(taken.state.error));
  }
  return resource.name;
}

async function originOf(
  source: Sandbox,
  snapshotId: string,
  withMemory: boolean | undefined,
  { store }: Platform,
): Promise<ForkOrigin> {
  const { image } = startOf(source);
  const scope = { workspace: source.workspace, kind: snapshotKind.name, parent: source.uid };
  const found = await store.resources.get(scope, snapshotId);
  if (!found) throw notFound(`snapshot '${snapshotId}' of sandbox '${source.name}'`);
  const taken = ofKind(snapshotKind, found);
  const phase = phaseOf(taken);
  if (phase !== "ready")
    throw new PlatformError("conflict", `snapshot '${snapshotId}' is ${phase} and cannot be used.`);
  if (withMemory && !taken.spec.memory)
    throw new PlatformError(
      "unprocessable",
      `snapshot '${snapshotId}' holds files alone. Take one with {"memory": true}.`,
    );
  const memory = (withMemory ?? taken.spec.memory) ? ({ memory: true } as const) : {};
  return { of: source.uid, name: source.name, snapshot: found.name, image, ...memory };
}

/** Lifetimes and volumes are not copied. */
function specOf(source: Sandbox, memory: number | undefined): Sandbox["spec"] {
  const { volumes: _volumes, lifecycle: _lifecycle, ...spec } = structuredClone(source.spec);
  const { ttl: _ttl, expires: _expires, ...runtime } = spec.runtime ?? {};
  return { ...spec, volumes: [], runtime: { ...runtime, ...(memory === undefined ? {} : { memory }) } };
}

interface Copy {
  name: string;
  uid: string;
  /** MB; absent: as the source has. */
  memory: number | undefined;
}

async function insert(
  source: Sandbox,
  { name, uid, memory }: Copy,
  fork: ForkOrigin,
  call: Pick<Call, "caller">,
  { store }: Platform,
): Promise<Resource> {
  const actor = call.caller.displayName;
  const draft = {
    workspace: source.workspace,
    kind: sandboxKind.name,
    parent: "",
    uid,
    name,
    metadata: source.metadata.labels ? { labels: source.metadata.labels } : {},
    spec: specOf(source, memory),
    secrets: store.resources.secretsOf(source),
    state: { fork },
    status: "DEPLOYING",
    events: [{ type: "created", message: `Forked from sandbox '${source.name}' by ${actor}.` }],
    revision: false,
    actor,
    settled: false,
    node: source.node,
  };
  return store.write(async (tx) => {
    let made = await store.resources.insert(tx, draft);
    if (made.outcome === "exists" && ENDED.has(made.resource.status ?? "")) {
      const event = { type: "replaced", message: `Replaced by ${actor} with a fork of this name.` };
      const retired = { retire: true, status: "TERMINATED", event } as const;
      await store.resources.modify(tx, source.workspace, made.resource.uid, () => retired);
      made = await store.resources.insert(tx, draft);
    }
    if (made.outcome === "exists" && made.resource.uid !== draft.uid)
      throw new PlatformError("already_exists", `sandbox '${name}' exists already. Choose another name.`);
    await store.links.replace(tx, made.resource, linksOf(made.resource, sandboxKind.references));
    return made.resource;
  });
}
