/** OAuth clients: every service account, the platform's own command line, and programs that registered themselves. */
import type { Role } from "../../contract/operation.ts";
import { randomSecret } from "../../lib/ids.ts";
import type { Store } from "../../store/store.ts";
import { ALL_SCOPES } from "./access-tokens.ts";
import { machineScopes } from "./machine-scopes.ts";
import { ownClient, ownClientId } from "./own-client.ts";

export const DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code";

export const REGISTERED_PREFIX = "reg-";

/** Whether a client registered itself, which anybody may do. */
export const isRegistered = (clientId: string): boolean => clientId.startsWith(REGISTERED_PREFIX);

/** Whether a client's id is the address of a document that describes it, which anybody may publish. */
export const isDocument = (clientId: string): boolean => /^https?:\/\//.test(clientId);

/** Whether nobody here has checked the client. */
export const isStranger = (clientId: string): boolean => isRegistered(clientId) || isDocument(clientId);

/** Client records in oidc-provider's format, with the member names of RFC 7591. */
export type ClientRecord = Record<string, unknown>;

export interface ClientDeps {
  store: Store;
  brand: string;
  memberScopes: ReadonlySet<string>;
  documents: { find(clientId: string): Promise<ClientRecord | undefined> };
  /** Origin of the pages that people see. */
  pagesUrl(): string;
}

export async function findClient(
  { store, brand, memberScopes, documents, pagesUrl }: ClientDeps,
  id: string,
): Promise<ClientRecord | undefined> {
  if (id === ownClientId(brand)) return ownClient(brand, pagesUrl());
  if (id === brand) return cli(id);
  if (isRegistered(id)) return store.oauth.find("Client", id);
  if (isDocument(id)) return documents.find(id);
  const account = await store.keys.findServiceAccountAcrossWorkspaces(id);
  const workspace = account && (await store.workspaces.get(account.workspace));
  if (!account || !workspace) return undefined;
  const scopes = machineScopes(account.role as Role, account.scopes, memberScopes);
  return {
    client_id: id,
    client_name: account.name,
    // Never compared (see verifyMachine), but oidc-provider requires one for this type of client.
    client_secret: randomSecret(),
    token_endpoint_auth_method: "client_secret_basic",
    grant_types: ["client_credentials"],
    response_types: [],
    redirect_uris: [],
    ...(scopes.includes(ALL_SCOPES) ? {} : { scope: scopes.join(" ") }),
    workspace: workspace.name,
    account: workspace.accountId,
  };
}

/** All client ids that tools use for the command line; requests are rewritten to the first. */
export const cliNames = (brand: string): readonly string[] => [brand, "service", "berth"];

/** Anybody can use this client id, so each of its tokens needs a person's consent and, with a code, PKCE. */
const cli = (id: string): ClientRecord => ({
  client_id: id,
  client_name: "the command line",
  application_type: "native",
  token_endpoint_auth_method: "none",
  grant_types: ["authorization_code", "refresh_token", DEVICE_GRANT],
  response_types: ["code"],
  // Loopback redirects ignore the port: a program listens on whichever port it gets.
  redirect_uris: ["http://127.0.0.1/callback", "http://[::1]/callback", "http://localhost/callback"],
});
