/** Builds the driver's workload spec from a sandbox's record. */

import { PlatformError } from "../../contract/errors.ts";
import { plainPath } from "../../contract/mount-path.ts";
import { restoreSecrets } from "../../contract/secret-fields.ts";
import { need } from "../../node/capabilities/need.ts";
import type { Mount, WorkloadSpec } from "../../node/workload.ts";
import { ofKind, type Resource } from "../../store/resources/resource.ts";
import { type ImageRequest, type StartImage, startImage } from "../image/pull.ts";
import type { Deps } from "../port.ts";
import { volume as volumeKind } from "../volume/kind.ts";
import { makeStorage } from "../volume/storage.ts";
import { limitsFor } from "../workload/limits.ts";
import { logTag } from "../workload/log-tag.ts";
import { platformEnv } from "../workload/platform-env.ts";
import { trustOf } from "../workload/trust.ts";
import { provenDriveMounts } from "./drives.ts";
import { originSnapshot } from "./fork-origin.ts";
import { type Sandbox, sandbox as sandboxKind } from "./kind.ts";
import { startOf } from "./start.ts";

interface WorkspaceRuntime {
  sandbox?: { disableProcessLogging?: boolean };
}

export type Attachment = NonNullable<Sandbox["spec"]["volumes"]>[number];

interface SandboxMachine {
  spec: WorkloadSpec;
  image: StartImage;
}

/** `pull`: how an image that is not on this machine is fetched. */
export async function sandboxMachine(sandbox: Sandbox, deps: Deps, pull: ImageRequest): Promise<SandboxMachine> {
  const spec = structuredClone(sandbox.spec);
  restoreSecrets({ spec }, sandboxKind.secrets, deps.store.resources.secretsOf(sandbox));
  const { memory, cpus, storageMb, envs = [], ports: [port] = [], ...runs } = startOf({ spec });
  const { image: reference, imagePullPolicy: policy, dockerConfig } = runs;
  const image = await startImage(reference, sandbox, deps, { ...pull, policy, dockerConfig });
  const snapshot = await originSnapshot(sandbox, deps);
  const workspaceRuntime = (await deps.store.workspaces.get(sandbox.workspace))?.runtime as
    | WorkspaceRuntime
    | undefined;
  const trust = await trustOf(sandbox, deps);
  const workload: WorkloadSpec = {
    uid: sandbox.uid,
    name: sandbox.name,
    image: image.loaded,
    ...(image.pull ? { pull: image.pull } : {}),
    env: {
      ...platformEnv(sandbox, deps.settings),
      ...trust.env,
      // PORT is set only when the sandbox declares a port; otherwise programs keep their own default.
      ...(port ? { PORT: String(port.target) } : {}),
      ...Object.fromEntries(envs.map(({ name, value = "" }) => [name, value])),
    },
    limits: limitsFor(memory, cpus),
    ...(storageMb === undefined ? {} : { storageMb }),
    mounts: [
      ...(await volumeMounts(sandbox, spec.volumes ?? [], deps)),
      ...(await provenDriveMounts(sandbox, deps)),
      ...trust.mounts,
    ],
    network: "outbound",
    ...(workspaceRuntime?.sandbox?.disableProcessLogging ? {} : { log: logTag(sandbox, "run") }),
    ...(snapshot === null ? {} : { snapshot }),
    ...(snapshot !== null && isResumed(sandbox) ? { resumed: true } : {}),
  };
  return { spec: workload, image };
}

/** Once it has run, a sandbox that is created again has other variables or limits, which memory would not know. */
const isResumed = ({ state }: Sandbox): boolean => state.fork?.memory === true && state.deployed === undefined;

/** The storage of a volume is made when it is first attached. */
export async function volumeMounts(owner: Resource, attachments: readonly Attachment[], deps: Deps): Promise<Mount[]> {
  const mounts: Mount[] = [];
  for (const [index, { name, mountPath, readOnly = false, type, sizeMb }] of attachments.entries()) {
    const id = type === "ephemeral" ? scratchId(owner, index) : await persistentVolume(owner.workspace, name, deps);
    if (type === "ephemeral")
      await (await need(deps.driver, "volumes")).create({ id, sizeMb: sizeMb ?? SCRATCH_DEFAULT_MB });
    mounts.push({ source: { volume: id }, path: plainPath(mountPath), readOnly });
  }
  return mounts;
}

const SCRATCH_DEFAULT_MB = 1024;

const scratchId = ({ uid }: Resource, index: number): string => `${uid}-scratch-${index}`;

/** Scratch disks end with the resource whose workloads had them. */
export async function removeScratch(
  owner: Resource,
  attachments: readonly Attachment[],
  { driver }: Deps,
): Promise<void> {
  const volumes = await driver.capability("volumes");
  for (const [index, { type }] of attachments.entries())
    if (type === "ephemeral") await volumes?.destroy(scratchId(owner, index));
}

async function persistentVolume(workspace: string, name: string, deps: Deps): Promise<string> {
  const volume = await deps.store.resources.get({ workspace, kind: volumeKind.name, parent: "" }, name);
  if (!volume || volume.deletedAt !== null) throw new PlatformError("not_found", `Volume '${name}' does not exist.`);
  await makeStorage(ofKind(volumeKind, volume), deps);
  return volume.uid;
}
