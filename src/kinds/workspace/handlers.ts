import { settleWorkspace } from "../../auth/bootstrap.ts";
import type { Caller } from "../../contract/caller.ts";
import { notFound, PlatformError } from "../../contract/errors.ts";
import type { Role } from "../../contract/operation.ts";
import { SECOND_MS } from "../../lib/time/clock.ts";
import type { Workspace } from "../../store/people/workspaces.ts";
import { etagOf, requireMatch } from "../etag.ts";
import { requireRoleToGive } from "../handing-on.ts";
import { type Call, type Implementation, implement, type Platform, workspaceOf } from "../port.ts";
import { chosenRegion } from "../region.ts";
import { countResources, describeContent } from "./counts.ts";
import { refuseName } from "./names.ts";
import {
  workspaceAvailability,
  workspaceCreate,
  workspaceDelete,
  workspaceGet,
  workspaceLeave,
  workspaceList,
  workspaceUpdate,
} from "./operations.ts";
import { removeWithin } from "./removal.ts";
import { workspaceToWire } from "./wire.ts";

/** How long a delete request waits for the removal, which continues after the answer. */
const REMOVAL_WAIT_MS = 5 * SECOND_MS;

export const workspaceHandlers: readonly Implementation[] = [
  implement(workspaceList, async ({ caller }, { store }) => {
    if (!caller.bound) return (await store.workspaces.listFor(caller.subject)).map(workspaceToWire);
    const own = await store.workspaces.get(caller.bound.workspace);
    return own ? [workspaceToWire(own)] : [];
  }),

  implement(workspaceGet, async (call, deps) => {
    const workspace = await current(call, deps);
    call.setHeader("etag", etagOf(workspace));
    const wire = workspaceToWire(workspace);
    return call.query.countResources ? { ...wire, resourceCounts: await countResources(workspace.name, deps) } : wire;
  }),

  implement(workspaceCreate, async ({ body, caller, setHeader, uid }, deps) => {
    const { store, settings } = deps;
    const refusal = refuseName(body.name, settings.brand);
    if (refusal) throw new PlatformError("invalid_field", `name: ${refusal.message} Choose another name.`);
    requireMappings(body.groupMappings, [], caller);
    const accountId = chooseAccount(caller, body.accountId);
    const id = uid();
    // A retried idempotent request meets its own earlier effect.
    if ((await store.workspaces.get(body.name))?.id !== id)
      await store.write(async (tx) => {
        await store.workspaces.insert(
          tx,
          {
            id,
            name: body.name,
            accountId,
            displayName: body.displayName ?? body.name,
            region: chosenRegion("region", body.region, null, settings),
            labels: body.labels ?? {},
            groupMappings: body.groupMappings ?? [],
            runtime: body.runtime ?? {},
          },
          caller.displayName,
        );
        await store.people.setMember(tx, body.name, caller.subject, "admin");
      });
    const workspace = await settleWorkspace(store, body.name);
    if (!workspace) throw notFound(`Workspace '${body.name}'`);
    setHeader("etag", etagOf(workspace));
    return workspaceToWire(workspace);
  }),

  implement(workspaceUpdate, async (call, { store, settings }) => {
    const { name, accountId, displayName, region, labels, groupMappings, runtime } = call.body;
    const workspace = workspaceOf(call);
    refuseChange("name", name, workspace.name);
    refuseChange("accountId", accountId, workspace.accountId);
    const updated = await store.workspaces.modify(workspace.name, call.caller.displayName, (now) => {
      requireMatch(call.headers, now, `Workspace '${now.name}'`);
      requireMappings(groupMappings, now.groupMappings, call.caller);
      return {
        displayName: displayName ?? now.displayName,
        region: chosenRegion("region", region, now.region, settings),
        labels: labels ?? now.labels,
        groupMappings: groupMappings ?? now.groupMappings,
        runtime: runtime ?? now.runtime,
      };
    });
    call.setHeader("etag", etagOf(updated));
    return workspaceToWire(updated);
  }),

  implement(workspaceDelete, async (call, deps) => {
    const { name } = workspaceOf(call);
    const actor = call.caller.displayName;
    const held = await describeContent(name, deps);
    const marked = await deps.store.workspaces.markDeleted(name, actor, (now) =>
      requireMatch(call.headers, now, `Workspace '${name}'`),
    );
    const gone = await removeWithin(name, actor, deps.here, AbortSignal.timeout(REMOVAL_WAIT_MS));
    return {
      ...workspaceToWire(marked),
      message: `Workspace '${name}' is deleted with everything in it (${held})${
        gone ? "." : "; what it held is being removed, and its name is free after that."
      }`,
    };
  }),

  implement(workspaceLeave, async (call, { store }) => {
    const workspace = workspaceOf(call);
    refuseBound(call.caller, "leave a workspace");
    if (!(await store.people.roleIn(workspace.name, call.caller.subject)))
      throw notFound(`Your membership of workspace '${workspace.name}'`);
    if (!(await store.people.changeMember(workspace.name, call.caller.subject, null)))
      throw new PlatformError(
        "conflict",
        `You are the only admin of '${workspace.name}'. Make somebody else admin first, or delete the workspace.`,
      );
    return workspaceToWire(workspace);
  }),

  implement(workspaceAvailability, async ({ body: { name }, query, caller }, { store, settings }) => {
    // Only whoever may make a workspace has to know which names are taken.
    chooseAccount(caller, undefined);
    const refusal = refuseName(name, settings.brand);
    const taken = !refusal && (await store.workspaces.isNameTaken(name));
    if (!query.withReason) return !refusal && !taken;
    if (refusal) return { available: false, ...refusal };
    if (!taken) return { available: true };
    return { available: false, reason: "taken" as const, message: `A workspace named '${name}' exists already.` };
  }),
];

/** The workspace of the call may come from a cache, so a single read loads the record again. */
async function current(call: Pick<Call, "workspace" | "operation">, { store }: Platform): Promise<Workspace> {
  const { name } = workspaceOf(call);
  const workspace = await store.workspaces.get(name);
  if (!workspace) throw notFound(`Workspace '${name}'`);
  return workspace;
}

function chooseAccount(caller: Caller, asked: string | undefined): string {
  refuseBound(caller, "create a workspace");
  const accounts = [...caller.accounts].sort((a, b) => Number(b.role === "admin") - Number(a.role === "admin"));
  const chosen = asked === undefined ? accounts[0] : accounts.find(({ id }) => id === asked);
  if (chosen) return chosen.id;
  throw new PlatformError(
    "forbidden",
    asked === undefined
      ? "You belong to no account, and a workspace needs one. Ask an account admin."
      : "accountId: this account is not yours.",
  );
}

/** Mapping a group to admin gives somebody the role admin. Stored mappings may be written back. */
function requireMappings(
  next: { groupName: string; role: Role }[] = [],
  before: Workspace["groupMappings"],
  caller: Caller,
): void {
  for (const { groupName, role } of next)
    if (!before.some((one) => one.groupName === groupName && one.role === role))
      requireRoleToGive("groupMappings", role, caller);
}

function refuseBound(caller: Caller, what: string): void {
  if (caller.bound)
    throw new PlatformError("forbidden", `A service account works only in its own workspace and cannot ${what}.`);
}

function refuseChange(field: string, asked: string | undefined, now: string): void {
  if (asked !== undefined && asked !== now)
    throw new PlatformError("immutable_field", `${field} cannot change: it is '${now}'.`);
}
