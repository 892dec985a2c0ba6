import { catalogueHint } from "../../contract/catalogue.ts";
import { invalidField, PlatformError } from "../../contract/errors.ts";
import { toIso } from "../../lib/time/clock.ts";
import { need } from "../../node/capabilities/need.ts";
import { PullRefused } from "../../registry/problem.ts";
import type { Transaction } from "../../store/database/database.ts";
import { ofKind, type Resource } from "../../store/resources/resource.ts";
import { requireOwnGrants } from "../drive/grants.ts";
import { PULLING, requireUsable } from "../image/pull.ts";
import { resolveReference, supportedImages } from "../image/resolve.ts";
import { requirePlacement } from "../policy/placement.ts";
import {
  type Behaviour,
  type Call,
  type Input,
  type Outlook,
  type Platform,
  type PrepareContext,
  workspaceOf,
} from "../port.ts";
import { isHere, isSameRegion } from "../region.ts";
import { volume as volumeKind } from "../volume/kind.ts";
import { prepareWorkload } from "../workload/behaviour.ts";
import { requireCpus } from "../workload/limits.ts";
import { requireNetwork } from "../workload/network-place.ts";
import { hasRoutes } from "../workload/trust.ts";
import { sandboxUploads } from "./build.ts";
import { expiryOf, prepareExpiry } from "./expiry.ts";
import { explainSandboxFailure } from "./failure.ts";
import { requireHibernation } from "./hibernation.ts";
import { prepareAccess } from "./kept.ts";
import { type Sandbox, sandbox } from "./kind.ts";
import { sandboxReconciler } from "./reconcile.ts";

type Runtime = NonNullable<Sandbox["spec"]["runtime"]>;

const MEMORY_DEFAULT_MB = 4096;
const IMAGE_DEFAULT = "base-image:latest";
const VPC_DEFAULT = "default";

/** A create may take over the name of a sandbox in one of these states. */
const ENDED = new Set(["FAILED", "TERMINATED"]);
/** Sandboxes that are going away: a create can neither reuse nor replace them yet. */
const LEAVING = new Set(["DELETING", "DEACTIVATING"]);

/** How long a create waits for the start; after that it answers and the start continues. */
const START_WAIT_MS = 60_000;
/** The same while the image is pulled; common HTTP clients wait 300 s for an answer. */
const PULL_WAIT_MS = 240_000;

/** Certificates and variables are given to a sandbox at its start. */
const ROUTES_NOT_TRUSTED = {
  code: "ROUTES_NEED_A_RESTART",
  message:
    "spec.network.proxy.routing was added to a running sandbox: programs inside do not trust the certificates of routed hosts until the sandbox is started anew (for example by a change of its environment).",
};

const limitsNotHeld = (limits: readonly string[]) => ({
  code: "LIMITS_NOT_ENFORCED",
  message: `This machine does not hold limits of ${limits.join(", ")} for the sandbox as a whole; \`berth doctor\` says why.`,
});

const startsSoon = (spec: Record<string, unknown>): Outlook => ({
  status: spec.enabled === false ? "DEACTIVATED" : "DEPLOYING",
});

const isSettled = ({ status }: Resource): boolean => status !== "DEPLOYING";

const isPulling = ({ events }: Resource): boolean => events.at(-1)?.type === PULLING;

const startFailure = ({ name, status, events }: Resource): PlatformError | null =>
  status === "FAILED"
    ? new PlatformError(
        "unprocessable",
        `sandbox '${name}' could not be started: ${events.at(-1)?.message ?? "no reason was recorded"}`,
      )
    : null;

export const sandboxBehaviour: Behaviour<Sandbox> = {
  kind: sandbox,
  async prepare(input, context) {
    if (context.call.query.upload === true) await need(context.deps.here.driver, "building");
    await settleVolumes(input, context);
    prepareWorkload(input, sandbox.name, context, MEMORY_DEFAULT_MB);
    await requirePlacement(sandbox.name, input, context);
    await requireOwnGrants(sandbox.name, input, context);
    prepareAccess(input, context);
    const { current, deps } = context;
    const { spec } = input;
    const { runtime = {} } = spec;
    spec.runtime = runtime;
    runtime.image ??= `${deps.settings.brand}/${IMAGE_DEFAULT}`;
    requireCpus("spec.runtime.cpus", runtime.cpus, deps.nodes.list());
    await requireImage(runtime, context);
    // Kernel options are fixed when the sandbox starts; later changes are ignored.
    const before = current?.spec.runtime?.extraArgs;
    if (current && before) runtime.extraArgs = before;
    else if (current) delete runtime.extraArgs;
    else spec.vpc ??= VPC_DEFAULT;
    await requireNetwork(input, context);
    prepareExpiry(input, context);
    await requireHibernation(sandbox.name, input, context);
  },
  outlook: startsSoon,
  onWrite: tellOfTrust,
  reconciled: true,
  awaitDelete: true,
  reconciler: sandboxReconciler,
  uploads: sandboxUploads,
  ready: {
    until: isSettled,
    waitMs: START_WAIT_MS,
    longer: { while: isPulling, waitMs: PULL_WAIT_MS },
    failed: startFailure,
  },
  onExists: (existing, call) => (isEnded(existing) ? "replace" : mayReuse(existing, call) ? "reuse" : "refuse"),
  present(wire, resource, { deps }) {
    const { state } = resource;
    // Of a sandbox whose node is away nobody knows whether it runs.
    if (state.compute !== undefined && state.away === undefined) wire.state = state.compute;
    if (state.isolation !== undefined) wire.isolation = state.isolation;
    if (state.bandwidth) wire.bandwidth = state.bandwidth;
    if (state.imageSource !== undefined) wire.imageSource = state.imageSource;
    const { fork } = state;
    if (fork?.name !== undefined && fork.of !== resource.uid)
      wire.forkedFrom = { sandbox: fork.name, snapshotId: fork.snapshot };
    const lastUsedAt = Math.max(state.lastUsedAt ?? 0, deps.here.activity.lastOf(resource.uid));
    if (lastUsedAt > 0) wire.lastUsedAt = toIso(lastUsedAt);
    const errors = errorsOf(resource);
    if (errors.length > 0) wire.errors = errors;
    const expiry = expiryOf(resource);
    if (expiry) wire.expiresIn = Math.max(0, Math.ceil((expiry.atMs - deps.clock.now()) / 1000));
  },
  explain: explainSandboxFailure,
};

const needsRestart = ({ spec, state }: Pick<Sandbox, "spec" | "state">): boolean =>
  hasRoutes({ spec }) && state.trusts === false;

/** Routes that a running sandbox gets for the first time are told once, beside `errors`. */
async function tellOfTrust(tx: Transaction, resource: Sandbox, { store }: Platform): Promise<Resource> {
  const type = "routes-need-a-restart";
  if (!needsRestart(resource) || resource.events.some((event) => event.type === type)) return resource;
  const event = { type, message: ROUTES_NOT_TRUSTED.message };
  return (await store.resources.modify(tx, resource.workspace, resource.uid, () => ({ event }))) ?? resource;
}

function errorsOf({ status, events, spec, state, uid, updatedAt }: Resource): Record<string, unknown>[] {
  const last = events.at(-1);
  const failure = { code: "START_FAILED", message: last?.message, fatal: true, instance: uid, time: last?.time };
  const unheld = Array.isArray(state.unheld) && state.unheld.length > 0 ? [limitsNotHeld(state.unheld)] : [];
  const lasting = [...(needsRestart({ spec, state }) ? [ROUTES_NOT_TRUSTED] : []), ...unheld];
  return [
    ...(status === "FAILED" ? [failure] : []),
    ...lasting.map((told) => ({ ...told, fatal: false, instance: uid, time: toIso(updatedAt) })),
  ];
}

/** An image that is neither here nor in its registry is refused before anything is stored. */
async function requireImage(runtime: Runtime, { call, current, deps }: PrepareContext<Sandbox>): Promise<void> {
  const { image = "" } = runtime;
  const user = { workspace: workspaceOf(call).name, kind: sandbox.name };
  const resolved = await resolveReference(image, user, deps.here);
  // A change of something else does not ask the registry.
  if (resolved && current?.spec.runtime?.image === image) return;
  const request = { policy: runtime.imagePullPolicy, dockerConfig: runtime.dockerConfig };
  const failure = resolved
    ? await requireUsable(image, resolved, user, deps.here, request).catch((error: unknown) => {
        if (error instanceof PlatformError && error.status < 500) return error;
        throw error;
      })
    : new PlatformError("bad_request", `There is no image '${image}' here.`);
  if (!failure) return;
  const supported = await supportedImages(user.workspace, deps.here);
  const reason = failure instanceof PullRefused ? { reason: failure.reason } : {};
  throw new PlatformError(
    "invalid_field",
    `spec.runtime.image: ${failure.message}${catalogueHint(image)} Images that are here: ${supported.join(", ")}.`,
    {
      body: { code: "INVALID_IMAGE", details: { requested_image: image, ...reason, supported_images: supported } },
    },
  );
}

const isEnded = ({ status }: Resource): boolean => ENDED.has(status ?? "");

const mayReuse = ({ deletedAt, status }: Resource, call: Call): boolean =>
  call.query.createIfNotExist === true && deletedAt === null && !LEAVING.has(status ?? "");

/** Volumes belong to one region: a sandbox without a region gets the volume's, and another region is refused. */
async function settleVolumes(
  { spec }: Input<Sandbox>,
  { call, current, deps }: PrepareContext<Sandbox>,
): Promise<void> {
  if (current) return;
  spec.volumes ??= [];
  const workspace = workspaceOf(call).name;
  const { settings } = deps;
  for (const [index, { name, type }] of spec.volumes.entries()) {
    if (type === "ephemeral") continue;
    const found = await deps.store.resources.get({ workspace, kind: volumeKind.name, parent: "" }, name);
    // A volume that does not exist is refused when the sandbox is written.
    if (!found) continue;
    const volume = ofKind(volumeKind, found);
    if ((!spec.region || spec.region === "auto") && isHere(volume.spec.region, settings))
      spec.region = volume.spec.region;
    // A volume on this machine may carry a region alias that the operator has removed since.
    const isNear = volume.node !== null && deps.nodes.find(volume.node) !== null;
    if (!isNear && !isSameRegion(spec.region, volume.spec.region, settings))
      throw invalidField(
        `spec.volumes[${index}].name`,
        `volume '${name}' is in region ${volume.spec.region}, not in ${spec.region}`,
      );
  }
}
