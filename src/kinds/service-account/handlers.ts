import type { z } from "zod";
import { hangsOn } from "../../contract/caller.ts";
import { notFound, PlatformError } from "../../contract/errors.ts";
import type { Role } from "../../contract/operation.ts";
import { toIso } from "../../lib/time/clock.ts";
import type { ServiceAccount } from "../../store/people/keys.ts";
import { createKey, deleteKey, grantScopes, listKeys, type Owner, standing } from "../api-key/keys.ts";
import { requireS3Url } from "../drive/s3.ts";
import { s3KeyOf } from "../drive/s3-keys.ts";
import { requireRoleToGive } from "../handing-on.ts";
import { type Call, type Implementation, implement, type Platform, workspaceOf } from "../port.ts";
import {
  serviceAccountCreate,
  serviceAccountDelete,
  serviceAccountKeyCreate,
  serviceAccountKeyDelete,
  serviceAccountKeyList,
  serviceAccountList,
  type serviceAccountShape,
  serviceAccountUpdate,
} from "./operations.ts";

/** Service accounts of one workspace. The limit stops a client that makes them in a loop. */
const PER_WORKSPACE_MAX = 1000;

export const serviceAccountHandlers: readonly Implementation[] = [
  implement(serviceAccountList, async (call, deps) =>
    (await standing(await deps.store.keys.listServiceAccounts(workspaceOf(call).name), deps)).map(toWire),
  ),

  implement(serviceAccountCreate, async (call, deps) => {
    const { store } = deps;
    const { name: workspace } = workspaceOf(call);
    await requireFreeName(workspace, call.body.name, deps);
    if ((await store.keys.countServiceAccounts(workspace)) >= PER_WORKSPACE_MAX)
      throw new PlatformError(
        "usage_limit_exceeded",
        `There are ${PER_WORKSPACE_MAX} service accounts already. Delete one that is no longer used.`,
      );
    const scopes = grantScopes(undefined, call.caller);
    const { account, secret } = await store.keys.createServiceAccount({
      workspace,
      name: call.body.name,
      description: call.body.description ?? "",
      role: call.body.role ?? "member",
      createdBy: call.caller.displayName,
      hangsOn: hangsOn(call.caller),
      ...(scopes ? { scopes } : {}),
    });
    return { ...toWire(account), client_secret: secret };
  }),

  implement(serviceAccountUpdate, async (call, deps) => {
    const { client_id: clientId, workspace, ...before } = await find(call, deps);
    const { name, description, role } = call.body;
    if (role !== before.role) requireRoleToGive("role", role, call.caller);
    if (name !== undefined && name !== before.name) await requireFreeName(workspace, name, deps);
    const updated = await deps.store.keys.updateServiceAccount(workspace, clientId, {
      ...(name === undefined ? {} : { name }),
      ...(description === undefined ? {} : { description }),
      ...(role === undefined ? {} : { role }),
    });
    if (!updated) throw unknown(clientId);
    return toWire(updated);
  }),

  implement(serviceAccountDelete, async (call, deps) => {
    const account = await find(call, deps);
    if (!(await deps.store.keys.removeServiceAccount(account.workspace, account.client_id)))
      throw unknown(account.client_id);
    return toWire(account);
  }),

  implement(serviceAccountKeyList, async (call, deps) => listKeys(await ownerOf(call, deps), deps)),

  implement(serviceAccountKeyCreate, async (call, deps) => {
    const owner = await ownerOf(call, deps);
    const { s3: isForS3, ...draft } = call.body;
    if (!isForS3) return createKey(owner, draft, call.caller, deps);
    const endpoint = requireS3Url(deps);
    const key = await createKey(owner, draft, call.caller, deps);
    return { ...key, s3: { ...s3KeyOf(key.id, deps), endpoint, region: deps.settings.region } };
  }),

  implement(serviceAccountKeyDelete, async (call, deps) =>
    deleteKey(await ownerOf(call, deps), call.params.apiKeyId ?? "", deps),
  ),
];

/**
 * People choose an account by its name, in the console and in lists of members, so a second one of the same name could
 * pass for the first. Accounts that were made earlier with the same name stay.
 */
async function requireFreeName(workspace: string, name: string, deps: Platform): Promise<void> {
  const accounts = await standing(await deps.store.keys.listServiceAccounts(workspace), deps);
  if (accounts.some((account) => account.name === name))
    throw new PlatformError("conflict", `There is a service account ${JSON.stringify(name)} already.`);
}

type AnyCall = Pick<Call, "workspace" | "operation" | "params">;

/** Service accounts of workloads belong to the platform and are not found here. */
async function find(call: AnyCall, { store }: Platform): Promise<ServiceAccount> {
  const clientId = call.params.clientId ?? "";
  const account = await store.keys.getServiceAccount(workspaceOf(call).name, clientId);
  if (!account || account.workload !== null) throw unknown(clientId);
  return account;
}

async function ownerOf(call: AnyCall, deps: Platform): Promise<Owner> {
  const { client_id: id, workspace } = await find(call, deps);
  return { type: "service_account", id, workspace };
}

const unknown = (clientId: string): PlatformError => notFound(`Service account '${clientId}'`);

const toWire = (account: ServiceAccount): z.input<typeof serviceAccountShape> => ({
  client_id: account.client_id,
  name: account.name,
  description: account.description,
  role: account.role as Role,
  created_at: toIso(account.created_at),
  updated_at: toIso(account.updated_at),
});
