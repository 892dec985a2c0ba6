/** The configuration of a workload's daemon, which reaches its pod in a Secret. */
import { PlatformError } from "../../../../contract/errors.ts";
import {
  SANDBOX_FILES,
  SANDBOX_RUN_DIR,
  type SandboxClaim,
  type SandboxdConfig,
} from "../../../../contract/sandbox-wire.ts";
import { EGRESS_DOOR_PORT, PLATFORM_DOOR_PORT, type WorkloadSpec } from "../../../workload.ts";
import { daemonConfig } from "../../common/daemon-config.ts";
import { PROXY_ENV } from "../../common/proxy-env.ts";
import type { Pod } from "../objects/answers.ts";
import { hostWord, labelsOf } from "../objects/names.ts";
import { GRACE_SECONDS, USER_FILE } from "../objects/pod-body.ts";
import { secretBody } from "../objects/secret-body.ts";
import { GATE_PORT } from "../settings.ts";
import type { WorkloadRecord } from "./record.ts";
import { type Door, doorPurpose, type Tokens } from "./tokens.ts";

export interface DaemonOptions {
  tokens: Tokens;
  /** Where workloads reach a server. */
  doors: { host: string; port: number };
  /** Whether processes get the user that the image names. */
  ownUser: boolean;
}

/** A Secret has one megabyte. */
const CONFIG_BYTES_MAX = 1_000_000;
const STATE_DIR = `${SANDBOX_RUN_DIR}/state`;
/** What init needs of the kubelet's grace for its own end. */
const LAST_WORDS_MS = 5_000;

/** The part of the configuration that a pod of the pool gets with its owner. */
export function claimOf(spec: WorkloadSpec, record: WorkloadRecord, options: DaemonOptions): SandboxClaim {
  // The cluster tells a pod its host name by this variable; a pod of the pool has that of the pool.
  const env = { HOSTNAME: hostWord(spec.name), ...envOf(spec) };
  return { env, doors: doorsOf(spec, record, options).map(({ remote }) => remote) };
}

/** The configuration of a pod that waits for its owner: as that of the workload, without all that is the owner's. */
export function waitingConfigOf(spec: WorkloadSpec, record: WorkloadRecord, options: DaemonOptions): SandboxdConfig {
  const doors = doorsOf(spec, record, options).map(({ listen }) => ({ listen }));
  return { ...configOf(spec, record, options), doors, env: {}, claimFile: `${STATE_DIR}/${SANDBOX_FILES.claim}` };
}

const envOf = ({ network, env }: WorkloadSpec): Record<string, string> => ({
  ...(network === "outbound" ? PROXY_ENV : {}),
  ...env,
});

function doorsOf({ network }: WorkloadSpec, record: WorkloadRecord, { tokens, doors }: DaemonOptions) {
  const door = (name: Door, port: number) => ({
    listen: `127.0.0.1:${port}`,
    remote: { ...doors, purpose: doorPurpose(name, record), token: tokens.doorOf(name, record) },
  });
  return [door("platform", PLATFORM_DOOR_PORT), ...(network === "outbound" ? [door("egress", EGRESS_DOOR_PORT)] : [])];
}

export function configOf(spec: WorkloadSpec, record: WorkloadRecord, options: DaemonOptions): SandboxdConfig {
  const { tokens, ownUser } = options;
  const env = envOf(spec);
  const usual = daemonConfig({
    ...{ network: spec.network, pids: spec.limits.pids, env, workDir: spec.workDir ?? "/", exec: spec.exec },
    ...{ imageArgv: [], ownNames: spec.loopbackNames === true, pooled: false },
  });
  const { drivesFile: _drives, upgradeFile: _upgrade, workDir, exec, ...rest } = usual;
  return {
    ...rest,
    ...(spec.workDir === undefined ? {} : { workDir }),
    ...(ownUser ? { userFile: USER_FILE } : {}),
    ...(exec
      ? {
          exec: {
            ...exec,
            ...(spec.exec?.endsAtMs === undefined
              ? {}
              : { endsAtFile: `${STATE_DIR}/${SANDBOX_FILES.endsAt}`, endsAtMs: spec.exec.endsAtMs }),
          },
        }
      : {}),
    doors: doorsOf(spec, record, options),
    gate: { port: GATE_PORT, token: tokens.gateOf(record) },
    graceMs: GRACE_SECONDS * 1000 - LAST_WORDS_MS,
    lastOutput: true,
  };
}

export function configSecret(instance: string, name: string, pod: Pod, config: SandboxdConfig) {
  const text = Buffer.from(JSON.stringify(config));
  if (text.length > CONFIG_BYTES_MAX)
    throw new PlatformError("bad_request", "The environment and the command of a workload have at most 1 MB together.");
  const data = { [SANDBOX_FILES.config]: text.toString("base64") };
  return secretBody({ type: "Opaque", name, labels: labelsOf(instance, "config"), pod, data });
}
