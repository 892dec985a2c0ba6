/** Callers of every sort, made straight in the store, for tests about who may do what. */
import { createPrivateKey } from "node:crypto";
import { SignJWT } from "jose";
import { generateSigningPair, SIGNING_ALG, SIGNING_PURPOSE } from "../src/auth/oauth/access-tokens.ts";
import type { Role } from "../src/contract/operation.ts";
import { uuidv7 } from "../src/lib/ids.ts";
import type { Store } from "../src/store/store.ts";
import { draftOf } from "./store.ts";

export interface Identity {
  key: string;
  sub: string;
}

let count = 0;

/** A person of an account, or of none, with a key; `workspaces` maps names to roles. */
export async function makeUser(
  store: Store,
  accountId: string | null,
  accountRole: Role,
  workspaces: Record<string, Role> = {},
  scopes: string[] | null = null,
  expiresAt: number | null = null,
  emailVerified = false,
): Promise<Identity> {
  count += 1;
  const email = `user${count}@example.test`;
  return store.write(async (tx) => {
    const user = await store.people.createUser(tx, { email, emailVerified });
    if (accountId !== null) await store.people.setAccountRole(tx, accountId, user.sub, accountRole);
    for (const [workspace, role] of Object.entries(workspaces))
      await store.people.setMember(tx, workspace, user.sub, role);
    const { secret } = await store.keys.insertKey(tx, {
      name: "test",
      ownerType: "user",
      owner: user.sub,
      workspace: null,
      scopes,
      createdBy: email,
      expiresAt,
    });
    return { key: secret, sub: user.sub };
  });
}

/** Another account with one workspace. */
export async function makeAccount(store: Store, workspace: string): Promise<{ id: string; workspace: string }> {
  return store.write(async (tx) => {
    const account = await store.people.createAccount(tx, workspace);
    await store.workspaces.insert(
      tx,
      {
        name: workspace,
        accountId: account.id,
        displayName: workspace,
        region: "local",
        labels: {},
        groupMappings: [],
        runtime: {},
      },
      "test",
    );
    return { id: account.id, workspace };
  });
}

/** A service account of a workspace with a key. */
export async function makeServiceAccount(store: Store, workspace: string, role: Role = "member"): Promise<Identity> {
  count += 1;
  const { account } = await store.keys.createServiceAccount({
    workspace,
    name: `robot${count}`,
    description: "",
    role,
    createdBy: "test",
  });
  const { secret } = await store.keys.createKey({
    name: "test",
    ownerType: "service_account",
    owner: account.client_id,
    workspace,
    scopes: null,
    createdBy: "test",
    expiresAt: null,
  });
  return { key: secret, sub: account.client_id };
}

/** The one copy of the workloads below. */
export const RUNNING_COPY = "copy-1";

/** The identity that a workload is given: a service account with scopes of its own. */
export async function makeWorkload(
  store: Store,
  workspace: string,
  scopes: string[],
  labels: Record<string, string> = {},
): Promise<Identity> {
  count += 1;
  const name = `workload${count}`;
  const workload = uuidv7(Date.now());
  // Of a kind that nothing acts on, so that the copy stays.
  await store.resources.create(
    draftOf("policy", name, {
      workspace,
      uid: workload,
      metadata: { labels },
      state: { copies: [{ uid: RUNNING_COPY }] },
    }),
  );
  const sub = await store.workloadAccounts.ensure({ workspace, workload, name, scopes });
  const { secret } = await store.keys.createKey({
    name: "test",
    ownerType: "service_account",
    owner: sub,
    workspace,
    scopes: null,
    createdBy: "test",
    expiresAt: null,
  });
  return { key: secret, sub };
}

/** An access token of a service account as our own server signs it, with whatever claims a test wants otherwise. */
export async function makeToken(
  store: Store,
  issuer: string,
  claims: Record<string, unknown> & { sub: string },
  signWith?: string,
): Promise<string> {
  const { id, privateKey } = await store.signingKeys.current(SIGNING_PURPOSE, generateSigningPair);
  const now = Math.floor(Date.now() / 1000);
  return new SignJWT({
    iss: issuer,
    aud: issuer,
    sub_type: "service_account",
    iat: now,
    exp: now + 600,
    jti: `test${now}`,
    scope: "admin",
    ...claims,
  })
    .setProtectedHeader({ alg: SIGNING_ALG, kid: id, typ: "at+jwt" })
    .sign(createPrivateKey(signWith ?? privateKey));
}
