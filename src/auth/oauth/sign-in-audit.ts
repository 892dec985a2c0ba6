/** Audit log lines about signing in: who tried, who was admitted, which program got a token. */
import type { AuditEntry } from "../../store/audit.ts";
import type { Store } from "../../store/store.ts";

export interface Origin {
  address: string;
  requestId: string;
}

/** Records a sign-in attempt of a known user, or of somebody who claims to be one. */
export async function recordSignIn(
  store: Store,
  given: { email: string; status: 200 | 401 | 429 },
  origin: Origin,
): Promise<void> {
  const email = given.email.trim().toLowerCase().slice(0, 254);
  await record(store, (await store.people.getUser(email))?.sub ?? null, origin, {
    actorName: email,
    authMethod: "password",
    action: "signIn",
    status: given.status,
  });
}

/** Records a sign-in at an external provider; `sub` is null when the person was not admitted. */
export const recordExternalSignIn = (store: Store, sub: string | null, provider: string, origin: Origin) =>
  record(store, sub, origin, { authMethod: `oidc:${provider}`, action: "signIn", status: sub === null ? 403 : 200 });

export const recordConsent = (store: Store, sub: string, clientId: string, allowed: boolean, origin: Origin) =>
  record(store, sub, origin, {
    authMethod: "session",
    action: "consent",
    target: clientId,
    status: allowed ? 200 : 403,
  });

export const recordPasswordChange = (store: Store, sub: string, status: number, origin: Origin) =>
  record(store, sub, origin, { authMethod: "session", action: "passwordSet", status });

/** Records that a person set a password with a link, which also signs them in. */
export const recordPasswordLink = (store: Store, sub: string, origin: Origin) =>
  record(store, sub, origin, { authMethod: "link", action: "passwordSet", status: 200 });

/** Records that a person opened the console with a link. */
export const recordConsoleLink = (store: Store, sub: string, origin: Origin) =>
  record(store, sub, origin, { authMethod: "link", action: "signIn", status: 200 });

/** Records that a person accepted an invitation with its link. */
export const recordJoining = (
  store: Store,
  sub: string,
  { invitation, ...where }: { invitation: string; workspace: string; accountId: string },
  origin: Origin,
) =>
  record(store, sub, origin, {
    ...{ authMethod: "link", action: "invitationAccept", target: invitation, status: 200 },
    ...where,
  });

/** Records that a service account exchanged its secret for a token. */
export async function recordMachineToken(store: Store, clientId: string, origin: Origin): Promise<void> {
  const account = await store.keys.findServiceAccountAcrossWorkspaces(clientId);
  const workspace = account && (await store.workspaces.get(account.workspace));
  await store.audit.record({
    ...NOBODY,
    actor: clientId,
    actorType: account?.workload ? "workload" : "service_account",
    actorName: account?.name ?? "",
    authMethod: "client_secret",
    action: "signIn",
    accountId: workspace?.accountId ?? null,
    workspace: workspace?.name ?? null,
    sourceAddress: origin.address,
    requestId: origin.requestId,
  });
}

const NOBODY: AuditEntry = {
  actor: "",
  actorType: "user",
  actorName: "",
  authMethod: "",
  keyId: null,
  action: "",
  target: "",
  accountId: null,
  workspace: null,
  outcome: "ok",
  status: 200,
  sourceAddress: "",
  requestId: "",
};

async function record(
  store: Store,
  sub: string | null,
  { address, requestId }: Origin,
  said: Partial<AuditEntry> & { status: number },
): Promise<void> {
  const user = sub === null ? null : await store.people.getUser(sub);
  // An attempt under an unknown name is shown to the operator, whose account is the first one.
  const [account] = user ? await store.people.accountsOf(user.sub) : await store.people.listAccountsAcrossUsers();
  await store.audit.record({
    ...NOBODY,
    actor: user?.sub ?? "",
    actorName: user?.email ?? "",
    accountId: account?.id ?? null,
    outcome: said.status < 400 ? "ok" : "denied",
    sourceAddress: address,
    requestId,
    ...said,
  });
}
