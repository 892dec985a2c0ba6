/** Builds the driver's workload spec from a revision of a workload. */
import { WORKLOAD_PORT } from "../../contract/instance.ts";
import { restoreSecrets } from "../../contract/secret-fields.ts";
import type { WorkloadSpec } from "../../node/workload.ts";
import type { Resource } from "../../store/resources/resource.ts";
import type { Revision } from "../../store/resources/revision.ts";
import type { ImageRequest, StartImage } from "../image/pull.ts";
import type { Deps } from "../port.ts";
import { volumeMounts } from "../sandbox/machine.ts";
import { codeEnv } from "./bundle.ts";
import { commandOf } from "./command.ts";
import { connectionEnv } from "./connection-env.ts";
import { codeOf, type RuntimeSpec, runtimeOf, stateOf } from "./deploy-state.ts";
import { driveMounts } from "./drive-mounts.ts";
import { identityEnv } from "./identity.ts";
import { limitsFor } from "./limits.ts";
import { logTag } from "./log-tag.ts";
import { neighbourEnv } from "./neighbour-env.ts";
import { platformEnv, usualEnv } from "./platform-env.ts";
import { MEMORY_DEFAULT_MB, secrets, workloadSpec } from "./spec.ts";
import { CODE_PATH } from "./start-command.ts";
import { trustOf } from "./trust.ts";

const SECRET_PATHS = [...secrets, "spec.envs[name?secret].value"];

/** The port a workload listens on: an application may choose it, all other kinds get WORKLOAD_PORT. */
export const portOf = ({ kind, spec }: Pick<Resource, "kind" | "spec">): number =>
  kind === "application" ? (runtimeOf(kind, spec).port ?? WORKLOAD_PORT) : WORKLOAD_PORT;

interface CopyMachine {
  spec: WorkloadSpec;
  image: StartImage;
}

/** `pull`: how an image that is not on this machine is fetched. */
export async function copyMachine(
  resource: Resource,
  revision: Revision,
  uid: string,
  deps: Deps,
  pull: ImageRequest,
): Promise<CopyMachine> {
  const spec = structuredClone(revision.spec);
  restoreSecrets({ spec }, SECRET_PATHS, deps.store.resources.secretsOf(revision));
  const { image, memory = MEMORY_DEFAULT_MB, storageMb, envs = [] } = runtimeOf(resource.kind, spec);
  const { snapshot, workingDir } = ownFiles(resource.kind, spec);
  const bundle = image ? undefined : codeOf(stateOf(resource), revision.id)?.bundle;
  const command = await commandOf(resource, spec, bundle, deps, pull);
  const port = String(portOf(resource));
  const trust = await trustOf(resource, deps);
  const machine: WorkloadSpec = {
    uid,
    name: resource.name,
    image: command.image.loaded,
    ...(command.image.pull ? { pull: command.image.pull } : {}),
    env: {
      ...(bundle?.drive ? codeEnv : {}),
      ...usualEnv(resource, deps.settings),
      ...trust.env,
      ...(await connectionEnv(resource, { spec, createdAt: revision.createdAt }, command.image, deps)),
      ...Object.fromEntries(envs.map(({ name, value = "" }) => [name, value])),
      ...platformEnv(resource, deps.settings),
      ...(await neighbourEnv(resource, spec, deps)),
      ...(await identityEnv(resource, uid, deps)),
      PORT: port,
      BL_SERVER_HOST: "0.0.0.0",
      BL_SERVER_PORT: port,
    },
    ...(snapshot === undefined ? {} : { snapshot }),
    ...(bundle?.drive ? { workDir: CODE_PATH } : workingDir === undefined ? {} : { workDir: workingDir }),
    limits: limitsFor(memory),
    ...(storageMb === undefined ? {} : { storageMb }),
    mounts: [
      ...(bundle?.drive ? [{ source: { drive: bundle.drive }, path: CODE_PATH, readOnly: true }] : []),
      ...trust.mounts,
      ...(await driveMounts(resource, spec, deps)),
      ...(await volumeMounts(resource, workloadSpec(spec).volumes ?? [], deps)),
    ],
    network: "outbound",
    loopbackNames: true,
    log: logTag(resource, "run", { revision: revision.id }),
    exec: command.exec,
  };
  return { spec: machine, image: command.image };
}

/** An application may run from a sandbox's snapshot. Its workspace was checked when the application was written. */
const ownFiles = (kind: string, spec: Record<string, unknown>): RuntimeSpec =>
  kind === "application" ? runtimeOf(kind, spec) : {};
