/**
 * Chooses server, credentials and workspace: the options, then variables, then the identity of the workload that this
 * code runs in, then the command line's file. A stored key is sent only to the address that it was stored for.
 */
import { BerthError } from "../core/errors.ts";
import { storedConnection } from "./cli-file.ts";
import { type Credential, keyCredential, renewedCredential } from "./credential.ts";
import { variable } from "./machine.ts";
import { requestToken } from "./oauth.ts";

export interface ConnectionOptions {
  /** Address of the server. Default: `BERTH_URL`, or the server of the command line. */
  url?: string | undefined;
  /** A key or token, or a function that is asked for the newest before each request. Default: `BERTH_API_KEY`. */
  apiKey?: string | (() => string | Promise<string>) | undefined;
  /** Of a service account, exchanged for tokens that are renewed before they end. */
  clientCredentials?: { id: string; secret: string } | undefined;
  /** Default: `BERTH_WORKSPACE`, the workload's own, or the one of the command line. */
  workspace?: string | undefined;
}

export interface Connection {
  url: string;
  credential: Credential;
  /** Undefined: the workspace that the credentials belong to. */
  workspace: string | undefined;
}

/** The first name is Berth's own; the second is set inside workloads and by tools for similar platforms. */
const VARIABLES = {
  url: ["BERTH_URL", "BL_API_URL"],
  apiKey: ["BERTH_API_KEY", "BL_API_KEY"],
  workspace: ["BERTH_WORKSPACE", "BL_WORKSPACE"],
  clientCredentials: ["BERTH_CLIENT_CREDENTIALS", "BL_CLIENT_CREDENTIALS"],
} as const;

const read = (what: keyof typeof VARIABLES): string | undefined => {
  const [own, other] = VARIABLES[what];
  return variable(own) ?? variable(other);
};

export async function resolveConnection(
  options: ConnectionOptions,
  fetch: typeof globalThis.fetch,
): Promise<Connection> {
  const given = options.url ?? read("url");
  const own = given === undefined ? undefined : normalizeUrl(given);
  const explicit = own === undefined ? null : explicitCredential(options, own, fetch);
  if (own !== undefined && explicit)
    return { url: own, credential: explicit, workspace: options.workspace ?? read("workspace") };
  const stored = await storedConnection(fetch);
  const url = own ?? stored?.url;
  if (url === undefined) throw new BerthError({ code: "no_server", message: "No Berth server is known." });
  const isStored = stored?.url === url;
  const credential = explicitCredential(options, url, fetch) ?? (isStored ? stored.credential : null);
  if (!credential) throw new BerthError({ code: "no_credentials", message: `There are no credentials for ${url}.` });
  return {
    url,
    credential,
    workspace: options.workspace ?? read("workspace") ?? (isStored ? stored.workspace : undefined),
  };
}

function explicitCredential(
  options: ConnectionOptions,
  url: string,
  fetch: typeof globalThis.fetch,
): Credential | null {
  if (options.apiKey !== undefined) return keyCredential(options.apiKey);
  if (options.clientCredentials) {
    const { id, secret } = options.clientCredentials;
    return clientCredential(url, btoa(`${id}:${secret}`), fetch);
  }
  const key = read("apiKey");
  if (key !== undefined) return keyCredential(key);
  const basic = read("clientCredentials");
  return basic === undefined ? null : clientCredential(url, basic, fetch);
}

const clientCredential = (url: string, basic: string, fetch: typeof globalThis.fetch): Credential =>
  renewedCredential(() => requestToken(url, { grant_type: "client_credentials" }, { fetch, basic }));

/** `http://host/v0/` and `http://host` are the same server. */
function normalizeUrl(url: string): string {
  if (!/^https?:\/\//.test(url)) throw new BerthError({ code: "invalid_url", message: `'${url}' is not an address.` });
  return url.replace(/\/+$/, "").replace(/\/v0$/, "");
}
