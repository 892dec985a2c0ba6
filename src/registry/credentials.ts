/** Credentials for registries, in the format of Docker's `config.json`. */
import { z } from "zod";
import { DOCKER_HUB } from "../contract/image-reference.ts";

export interface Credentials {
  username: string;
  password: string;
  /** A refresh token that `docker login` got in place of a password. */
  identityToken?: string;
}

/** Looks up the credentials for a registry, as people write it. */
export type FindCredentials = (registry: string) => Credentials | null | Promise<Credentials | null>;

export const NO_CREDENTIALS: FindCredentials = () => null;

const entry = z.object({
  auth: z.string().optional(),
  username: z.string().optional(),
  password: z.string().optional(),
  identitytoken: z.string().optional(),
});
const shape = z.object({ auths: z.record(z.string(), entry.nullable()).optional() });

/** Throws for a text that is no Docker configuration. */
export function parseDockerConfig(text: string): FindCredentials {
  const { auths = {} } = shape.parse(JSON.parse(text));
  const known = new Map<string, Credentials>();
  for (const [key, value] of Object.entries(auths)) {
    const found = value && credentialsIn(value);
    if (found) known.set(registryIn(key), found);
  }
  return (registry) => known.get(registry) ?? null;
}

/** The first that knows the registry. */
export const firstOf =
  (...sources: readonly FindCredentials[]): FindCredentials =>
  async (registry) => {
    for (const source of sources) {
      const found = await source(registry);
      if (found) return found;
    }
    return null;
  };

/** Keys are hosts, or addresses such as `https://index.docker.io/v1/`. */
export function registryIn(key: string): string {
  const host = key
    .replace(/^https?:\/\//, "")
    .replace(/\/.*$/, "")
    .toLowerCase();
  return ["index.docker.io", "registry-1.docker.io"].includes(host) ? DOCKER_HUB : host;
}

function credentialsIn({ auth, username, password, identitytoken }: z.infer<typeof entry>): Credentials | null {
  const plain = auth ? Buffer.from(auth, "base64").toString("utf8") : "";
  const colon = plain.indexOf(":");
  const [name, word] = colon > 0 ? [plain.slice(0, colon), plain.slice(colon + 1)] : [username ?? "", password ?? ""];
  if (!identitytoken && (name === "" || word === "")) return null;
  return { username: name, password: word, ...(identitytoken ? { identityToken: identitytoken } : {}) };
}
