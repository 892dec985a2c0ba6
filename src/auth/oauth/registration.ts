/**
 * Programs that register themselves (RFC 7591), as MCP clients do with an unknown server. Anybody may register, so it
 * gives little: a public client that needs a person's consent and PKCE, and never gets the scope `admin`.
 */
import { z } from "zod";
import { WORKLOADS } from "../../contract/addresses.ts";
import { randomWord } from "../../lib/ids.ts";
import { clientNetworks } from "../../lib/network/client-network.ts";
import { type Clock, DAY_MS, SECOND_MS } from "../../lib/time/clock.ts";
import type { Store } from "../../store/store.ts";
import { ALL_SCOPES } from "./access-tokens.ts";
import { type ClientRecord, isRegistered, REGISTERED_PREFIX } from "./clients.ts";
import { OauthError, PROTOCOL_SCOPES } from "./request.ts";

/** Registrations per 15 minutes. A person sets up a few programs; an office shares an address. */
const TRIES_MAX = { address: 30, all: 1000 };
/** Most registered clients. Those that no person has allowed access are removed after a day. */
const CLIENTS_MAX = 10_000;
const UNUSED_SECONDS = DAY_MS / SECOND_MS;
const USED_SECONDS = (180 * DAY_MS) / SECOND_MS;
const REDIRECTS_MAX = 10;
const LOOPBACK = new Set(["127.0.0.1", "[::1]", "localhost"]);
/**
 * Scheme of an app's redirect address: a reversed domain name (RFC 8252, 7.1), so it contains a dot. Schemes without a
 * dot belong to the browser (`javascript:`, `data:`), to the machine (`file:`, `ms-msdt:`, `search-ms:`) or to nobody
 * in particular.
 */
const PRIVATE_USE = /^[a-z][a-z0-9+-]*(\.[a-z0-9+-]+)+:$/;

const redirect = z
  .string()
  .max(1024)
  .refine(isRedirect, "must be https, loopback, or an app's own scheme with a dot, such as com.example.app:/callback");

/** What a program that nobody here knows says about itself. */
export const programMetadata = z.looseObject({
  redirect_uris: z.array(redirect).min(1).max(REDIRECTS_MAX),
  client_name: z.string().max(128).optional(),
  /** Where people may be sent after signing out. */
  post_logout_redirect_uris: z.array(redirect).max(REDIRECTS_MAX).default([]),
});

/** Default scopes of a registered program: to call workloads. */
export const CALLING_SCOPES: readonly string[] = [...new Set(Object.values(WORKLOADS).map(({ scope }) => scope))];

export interface RegistrationDeps {
  store: Store;
  clock: Clock;
  scopes: ReadonlySet<string>;
}

export async function register(
  body: unknown,
  address: string,
  { store, clock, scopes }: RegistrationDeps,
): Promise<ClientRecord> {
  const verdict = await store.signInTries.count([
    ...clientNetworks(address).map(({ name, share }) => ({ key: `register:${name}`, max: TRIES_MAX.address * share })),
    { key: "register", max: TRIES_MAX.all },
  ]);
  if (verdict !== "allowed" || (await store.oauth.count("Client")) >= CLIENTS_MAX)
    throw new OauthError("temporarily_unavailable", "Too many programs register. Try again later.", 429);
  const { success, data, error } = programMetadata.safeParse(body);
  if (!success) {
    const isRedirectWrong = error.issues.some(
      ({ code, path }) => code === "custom" && String(path[0]).endsWith("uris"),
    );
    const problem = isRedirectWrong ? "invalid_redirect_uri" : "invalid_client_metadata";
    throw new OauthError(problem, z.prettifyError(error).slice(0, 500));
  }
  const id = `${REGISTERED_PREFIX}${randomWord(24)}`;
  const record = clientNamed(id, data, scopes);
  await store.oauth.put("Client", id, record, UNUSED_SECONDS);
  return { ...record, client_id_issued_at: Math.floor(clock.now() / SECOND_MS) };
}

/** A public client that needs consent and PKCE, with every scope but `admin`. */
export const clientNamed = (
  id: string,
  data: z.output<typeof programMetadata>,
  scopes: ReadonlySet<string>,
): ClientRecord => ({
  client_id: id,
  client_name: shown(data.client_name ?? "") || "a program without a name",
  application_type: "native",
  token_endpoint_auth_method: "none",
  grant_types: ["authorization_code", "refresh_token"],
  response_types: ["code"],
  redirect_uris: data.redirect_uris,
  post_logout_redirect_uris: data.post_logout_redirect_uris,
  scope: [...PROTOCOL_SCOPES, ...[...scopes].filter((scope) => scope !== ALL_SCOPES)].join(" "),
});

/** Extends the registration of a client that a person has allowed access. */
export async function keepRegistered(store: Store, clientId: string): Promise<void> {
  const record = isRegistered(clientId) ? await store.oauth.find("Client", clientId) : undefined;
  if (record) await store.oauth.put("Client", clientId, record, USED_SECONDS);
}

function isRedirect(text: string): boolean {
  if (!URL.canParse(text) || /[\s\\#*]/.test(text)) return false;
  const { protocol, hostname, username, password } = new URL(text);
  if (username !== "" || password !== "") return false;
  if (protocol === "https:") return !LOOPBACK.has(hostname);
  if (protocol === "http:") return LOOPBACK.has(hostname);
  return PRIVATE_USE.test(protocol);
}

/** People decide by the name, so invisible characters are replaced. */
const shown = (name: string): string => name.replace(/[\p{C}\p{Z}]+/gu, " ").trim();
