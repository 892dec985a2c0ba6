/** A fork: a new sandbox, or an application, with the image, memory, environment and files of a sandbox. */
import { notFound, PlatformError } from "../../contract/errors.ts";
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
import { sandboxFork } from "./operations.ts";
import { newSnapshotId, phaseOf } from "./phase.ts";
import { settled } from "./settled.ts";

/** A fork may take over the name of a sandbox in one of these states. */
const ENDED = new Set(["FAILED", "TERMINATED"]);

const fork = implement(sandboxFork, async (call, deps) => {
  const { resource: source } = await find(sandboxKind, call, deps);
  const { body } = call;
  const name = body.targetName ?? body.target_name;
  if (name === undefined) throw new PlatformError("invalid_field", "targetName: is required.");
  const type = body.targetType ?? body.type ?? "sandbox";
  if (source.retired || source.deletedAt !== null || source.status !== "DEPLOYED")
    throw new PlatformError("conflict", `sandbox '${source.name}' is ${source.status} and cannot be forked.`);
  if (type === "sandbox") await refuseTaken(source.workspace, name, deps);
  const snapshotId = body.snapshotId ?? (await takenNow(source, call.caller.displayName, deps));
  const origin = await originOf(source, snapshotId, deps);
  if (type === "application") {
    await forkToApplication({ source, name, snapshot: origin.snapshot }, call, deps.here);
    return { name, type, snapshotId: origin.snapshot };
  }
  await requireGrantable({ ...source, name }, source, call, deps);
  const made = await insert(source, name, origin, body.memory, call, deps);
  await settled(made, (now) => now?.status !== "DEPLOYING", deps);
  return { name, type, snapshotId: origin.snapshot };
});

export const forkHandlers: readonly Implementation[] = [{ ...fork, node: nodeOfSandbox }];

/** Checked before the files are copied. A create that takes the name meanwhile is caught by the insert. */
async function refuseTaken(workspace: string, name: string, { store }: Platform): Promise<void> {
  const found = await store.resources.get({ workspace, kind: sandboxKind.name, parent: "" }, name);
  if (!found || found.retired || ENDED.has(found.status ?? "")) return;
  throw new PlatformError("already_exists", `sandbox '${name}' exists already. Choose another name.`);
}

/** Saves the current files as an ordinary snapshot, which can be forked again and deleted. */
async function takenNow(source: Resource, actor: string, deps: Platform): Promise<string> {
  const { resource } = await deps.store.resources.create({
    workspace: source.workspace,
    kind: snapshotKind.name,
    parent: source.uid,
    uid: uuidv7(deps.clock.now()),
    name: newSnapshotId(),
    metadata: {},
    spec: {},
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

async function originOf(source: Sandbox, snapshotId: string, { store }: Platform): Promise<ForkOrigin> {
  const { image } = startOf(source);
  const scope = { workspace: source.workspace, kind: snapshotKind.name, parent: source.uid };
  const found = await store.resources.get(scope, snapshotId);
  if (!found) throw notFound(`snapshot '${snapshotId}' of sandbox '${source.name}'`);
  const phase = phaseOf(ofKind(snapshotKind, found));
  if (phase !== "ready")
    throw new PlatformError("conflict", `snapshot '${snapshotId}' is ${phase} and cannot be used.`);
  return { of: source.uid, name: source.name, snapshot: found.name, image };
}

/** Lifetimes and volumes are not copied. */
function specOf(source: Sandbox, memory: number | undefined): Sandbox["spec"] {
  const { volumes: _volumes, lifecycle: _lifecycle, ...spec } = structuredClone(source.spec);
  const { ttl: _ttl, expires: _expires, ...runtime } = spec.runtime ?? {};
  return { ...spec, volumes: [], runtime: { ...runtime, ...(memory === undefined ? {} : { memory }) } };
}

async function insert(
  source: Sandbox,
  name: string,
  fork: ForkOrigin,
  memory: number | undefined,
  call: Pick<Call, "caller" | "uid">,
  { store }: Platform,
): Promise<Resource> {
  const actor = call.caller.displayName;
  const draft = {
    workspace: source.workspace,
    kind: sandboxKind.name,
    parent: "",
    uid: call.uid(),
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
