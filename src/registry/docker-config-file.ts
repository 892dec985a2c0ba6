/** The operator's Docker configuration: its credentials, and its credential helpers. */
import { readFileSync } from "node:fs";
import { z } from "zod";
import { askHelper } from "./credential-helper.ts";
import { type FindCredentials, parseDockerConfig, registryIn } from "./credentials.ts";

const helpersShape = z.object({
  credsStore: z.string().optional(),
  credHelpers: z.record(z.string(), z.string()).optional(),
});

/**
 * Helpers are asked first. A file that changes, such as one with tokens that
 * expire, counts from its next use on.
 */
export function dockerConfigFile(path: string, onError: (error: unknown) => void): FindCredentials {
  return async (registry) => {
    try {
      const text = readFileSync(path, "utf8");
      const helper = helperFor(text, registry);
      return (helper && (await askHelper(helper, registry))) || (await parseDockerConfig(text)(registry));
    } catch (error) {
      onError(error);
      return null;
    }
  };
}

/** The helper of this registry, or the one of all registries. */
function helperFor(text: string, registry: string): string | undefined {
  const { credHelpers = {}, credsStore } = helpersShape.parse(JSON.parse(text));
  const own = Object.entries(credHelpers).find(([key]) => registryIn(key) === registry)?.[1];
  return own ?? (credsStore || undefined);
}
