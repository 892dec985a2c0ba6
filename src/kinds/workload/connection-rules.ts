/**
 * Secrets of connections reach only the platform's own servers, without any foreign configuration, and code that an
 * admin deployed. The rules are checked when a function is written and when it starts, so that a record older than the
 * rules does not start either.
 */
import { invalidField, PlatformError } from "../../contract/errors.ts";
import { type HubServer, serverOf } from "../hub/servers.ts";
import type { Settings } from "../port.ts";
import { workloadSpec } from "./spec.ts";

type Spec = Record<string, unknown>;

/** Prefixes of environment variables that make a program load foreign code. */
const LOADERS = new RegExp(
  `^(${[
    "LD_|DYLD_|GLIBC_TUNABLES|GCONV_PATH|MALLOC_|OPENSSL_(CONF|MODULES|ENGINES)",
    "NODE_OPTIONS|NODE_PATH|NODE_REPL|BUN_|DENO_",
    "PYTHON(?!(UNBUFFERED|DONTWRITEBYTECODE|IOENCODING|UTF8|HASHSEED)$)",
    "BASH_|ENV$|SHELLOPTS|BASHOPTS|PS4|PROMPT_COMMAND|ZDOTDIR",
    "PERL5|PERLLIB|PERL_|RUBYOPT|RUBYLIB|GEM_|BUNDLE_|LUA_|PHPRC|PHP_INI",
    "JAVA_TOOL_OPTIONS|JAVA_OPTS|_JAVA|JDK_JAVA_OPTIONS|CLASSPATH|DOTNET_STARTUP|CORECLR_|COR_",
  ].join("|")})`,
  "i",
);

export const connectionNames = (spec: Spec): string[] => workloadSpec(spec).integrationConnections ?? [];

/** Refuses a function with connections whose configuration could make other code read their secrets. */
export function requireUntouched(spec: Spec, settings: Pick<Settings, "brand">): void {
  if (connectionNames(spec).length === 0) return;
  const server = serverOf({ kind: "function", spec }, settings);
  if (server) requirePlain(spec, server);
  const { envs = [] } = workloadSpec(spec).runtime ?? {};
  for (const [index, { name }] of envs.entries())
    if (LOADERS.test(name))
      throw invalidField(
        `spec.runtime.envs[${index}].name`,
        `${name} loads other code, which would get the secrets of the connections`,
      );
}

function requirePlain(spec: Spec, { displayName }: HubServer): void {
  const { envs } = workloadSpec(spec).runtime ?? {};
  for (const [field, value] of Object.entries({ "runtime.envs": envs, volumes: spec.volumes, drives: spec.drives }))
    if (Array.isArray(value) && value.length > 0)
      throw invalidField(
        `spec.${field}`,
        `the ${displayName} server holds the secrets of its connections and takes nothing else: leave this out`,
      );
}

/**
 * Refuses an image whose content changed under the same name: no admin has approved the new content. `changedAt` is null
 * only for images that the operator installed; a date that cannot be read is refused.
 */
export function requireSameImage(image: string, changedAt: string | null, deployedAtMs: number): void {
  if (changedAt === null || Date.parse(changedAt) <= deployedAtMs) return;
  throw new PlatformError(
    "bad_request",
    `The image ${image} has changed since an admin deployed it with its connections. Load it under a new tag, and let an admin deploy that.`,
  );
}
