/**
 * Selects server, key and workspace. Flags win over the environment, the environment over the chosen profile, and the
 * profile over the credentials of a server on this machine. A stored key is sent only to the address it was stored for.
 */
import { join } from "node:path";
import { normalizeUrl } from "../client/client.ts";
import { credentialsFile, readCredentials } from "../lib/credentials.ts";
import { UsageError } from "../lib/usage-error.ts";
import { LOCAL_PROFILE, noProfile, type Profile, readProfiles } from "./profiles.ts";
import { accessTokenOf } from "./tokens.ts";

export interface ConnectionOptions {
  url?: string | undefined;
  workspace?: string | undefined;
  profile?: string | undefined;
  /** Ask the server to refuse unknown members. */
  strict?: boolean;
}

export interface Connection {
  url: string;
  /** The API key, or a valid token. */
  bearer(): Promise<string>;
  workspace: string | null;
  /** Where address and key came from, for messages. */
  source: string;
}

type Env = Readonly<Record<string, string | undefined>>;

/** The first name is Berth's own; the others are set by tools for similar platforms. */
const VARIABLES = {
  url: ["BERTH_URL", "BL_API_URL"],
  apiKey: ["BERTH_API_KEY", "BL_API_KEY"],
  workspace: ["BERTH_WORKSPACE", "BL_WORKSPACE"],
} as const;

export const dataFolder = (env: Env): string => {
  const home = env.HOME ?? "";
  return (env.BERTH_DATA || join(home, ".berth")).replace(/^~(?=$|\/)/, home);
};

export function resolveConnection(options: ConnectionOptions, env: Env): Connection {
  const stored = storedConnection(options.profile ?? env.BERTH_PROFILE, env);
  const url = normalizeUrl(options.url ?? variable(env, "url") ?? stored?.url ?? "");
  if (url === "") {
    throw new UsageError(
      `no server is known: there is no ${credentialsFile(dataFolder(env))} and nobody has logged in.`,
      "start one with `berth up`, or use `berth login URL`, or set BERTH_URL and BERTH_API_KEY",
    );
  }
  if (!/^https?:\/\//.test(url)) throw new UsageError(`'${url}' is not an address.`, "write it as http://host:port");
  const isStored = stored !== null && url === normalizeUrl(stored.url);
  const key = variable(env, "apiKey");
  const bearer = key === undefined ? (isStored ? stored.bearer : null) : async () => key;
  if (!bearer) {
    throw new UsageError(`there are no credentials for ${url}.`, `use \`berth login ${url}\`, or set BERTH_API_KEY`);
  }
  const workspace = options.workspace ?? variable(env, "workspace") ?? (isStored ? stored.workspace : undefined);
  return { url, bearer, workspace: workspace || null, source: isStored ? stored.source : "environment" };
}

interface Stored {
  url: string;
  workspace?: string;
  source: string;
  bearer: Connection["bearer"] | null;
}

function storedConnection(asked: string | undefined, env: Env): Stored | null {
  const dataDir = dataFolder(env);
  const { current, profiles } = readProfiles(dataDir);
  const name = asked || current;
  const profile = profiles[name];
  if (name !== LOCAL_PROFILE) {
    if (profile?.url) {
      const { url, workspace } = profile;
      const bearer = bearerOf(dataDir, name, url, profile);
      return { url, ...(workspace ? { workspace } : {}), bearer, source: `profile '${name}'` };
    }
    throw noProfile(name, dataDir);
  }
  const local = readCredentials(dataDir);
  if (!local) return null;
  const { url, workspace } = { ...local, ...(profile?.workspace ? { workspace: profile.workspace } : {}) };
  return { url, workspace, bearer: bearerOf(dataDir, name, url, local), source: credentialsFile(dataDir) };
}

function bearerOf(dataDir: string, name: string, url: string, { apiKey, tokens }: Profile): Stored["bearer"] {
  if (tokens) return () => accessTokenOf(dataDir, name, url, tokens);
  return apiKey === undefined ? null : async () => apiKey;
}

const variable = (env: Env, what: keyof typeof VARIABLES): string | undefined =>
  VARIABLES[what].map((name) => env[name]).find((value) => value !== undefined && value !== "");
