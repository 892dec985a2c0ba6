/** Environment variables of a workload, as its owner writes them. */
import { invalidField } from "../../contract/errors.ts";
import { MASK } from "../../contract/secret-fields.ts";

export interface Env {
  name: string;
  value?: string;
  secret?: boolean;
}

/** The platform's own variables tell a workload who it is; nobody may pretend otherwise. */
const RESERVED_PREFIX = "BL_";

/** Switches that carry the prefix and are meant to be set by the owner. */
const SWITCHES =
  /^BL_(SANDBOX_USER|SANDBOX_USER_ENABLED|DISABLE_KEEPALIVE|LOG_LEVEL|LOGGER\w*|DEBUG_TELEMETRY|ENABLE_OPENTELEMETRY|TASK_PREFIX|EXECUTION_PREFIX)$/;

/** Linux takes no longer "NAME=value", and no command would start with one. */
const ENTRY_BYTES_MAX = 128 * 1024;

/** Refuses what cannot be set, keeps the last of several entries of one name, and keeps a secret a secret. */
export function preparedEnvs(envs: readonly Env[], path: string, stored: readonly Env[] = []): Env[] {
  for (const [index, { name, value = "" }] of envs.entries()) {
    if (Buffer.byteLength(`${name}=${value}\0`) > ENTRY_BYTES_MAX)
      throw invalidField(`${path}[${index}].value`, `must not have more than ${ENTRY_BYTES_MAX} bytes with its name`);
    if (name.startsWith(RESERVED_PREFIX) && !SWITCHES.test(name))
      throw invalidField(
        `${path}[${index}].name`,
        `must not start with ${RESERVED_PREFIX}, which the platform sets itself`,
      );
  }
  const secretNames = new Set(stored.filter(({ secret }) => secret).map(({ name }) => name));
  const byName = new Map(envs.map((env) => [env.name, env]));
  return [...byName.values()].map((env) =>
    // A client that forgets the flag but sends the mask means the stored secret, not eight stars.
    env.value === MASK && secretNames.has(env.name) ? { ...env, secret: true } : env,
  );
}
