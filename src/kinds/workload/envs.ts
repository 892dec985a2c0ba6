/** Environment variables in a workload's spec. */
import type { z } from "zod";
import { invalidField } from "../../contract/errors.ts";
import type { env } from "../../contract/fields.ts";
import { MASK } from "../../contract/secret-fields.ts";

export type Env = z.output<typeof env>;

/** Prefix of the platform's own variables, which owners may not set. */
const RESERVED_PREFIX = "BL_";

/** Variables with the prefix that owners may set. */
const SWITCHES =
  /^BL_(SANDBOX_USER|SANDBOX_USER_ENABLED|DISABLE_KEEPALIVE|LOG_LEVEL|LOGGER\w*|DEBUG_TELEMETRY|ENABLE_OPENTELEMETRY|TASK_PREFIX|EXECUTION_PREFIX)$/;

/** Bytes of "NAME=value": Linux starts no program with a longer entry. */
const ENTRY_BYTES_MAX = 128 * 1024;

/** Refuses variables that cannot be set, keeps the last entry of each name, and keeps secrets marked as secret. */
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
    // A client that sends the mask without the flag means the stored secret, not eight asterisks.
    env.value === MASK && secretNames.has(env.name) ? { ...env, secret: true } : env,
  );
}
