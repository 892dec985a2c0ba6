/** Who may ask for tokens: every service account, and the platform's own command line. */
import { randomSecret } from "../../lib/ids.ts";
import type { Store } from "../../store/store.ts";

/** Client records are data of oidc-provider, in the words of the registration standard. */
export type ClientRecord = Record<string, unknown>;

export async function findClient(store: Store, id: string): Promise<ClientRecord | undefined> {
  const account = await store.keys.findServiceAccountAcrossWorkspaces(id);
  const workspace = account && (await store.workspaces.get(account.workspace));
  if (!account || !workspace) return undefined;
  return {
    client_id: id,
    client_name: account.name,
    // Never compared (see compareSecret), but a client of this sort must have one.
    client_secret: randomSecret(),
    token_endpoint_auth_method: "client_secret_basic",
    grant_types: ["client_credentials"],
    response_types: [],
    redirect_uris: [],
    ...(account.scopes ? { scope: ["admin", ...account.scopes].join(" ") } : {}),
    workspace: workspace.name,
    account: workspace.accountId,
  };
}

/** Only the hash of a secret is stored, and what is looked up by a hash leaks nothing by its timing. */
export const compareSecret = async (store: Store, clientId: string, secret: string): Promise<boolean> =>
  (await store.keys.verifyServiceAccount(clientId, secret)) !== null;
