/** The identity of a workload when it calls the platform: its own service account, made when its first copy starts. */
import { copySecret } from "../../auth/machine-secrets.ts";
import type { Resource } from "../../store/resources/resource.ts";
import type { Platform } from "../port.ts";
import { stateOf } from "./deploy-state.ts";

/**
 * Scopes of a workload: call its neighbours, start jobs, use sandboxes. A workload may not deploy, read the keys of
 * connections or manage people; an owner whose code needs more gives it an API key.
 */
export const WORKLOAD_SCOPES: readonly string[] = [
  ...["agents", "applications", "drives", "functions", "jobs", "models", "sandboxes"].flatMap((noun) => [
    `${noun}:get`,
    `${noun}:list`,
  ]),
  "jobs:create",
  "sandboxes:control",
  "sandboxes:create",
  "sandboxes:delete",
  "sandboxes:update",
  "threads:get",
  "threads:list",
  "threads:update",
];

/** `copy` is the id by which `isRunning` finds the copy. */
export async function identityEnv(resource: Resource, copy: string, deps: Platform): Promise<Record<string, string>> {
  return credentialsOf(await accountOf(resource, deps), copy, deps);
}

export const accountOf = ({ workspace, uid, kind, name }: Resource, deps: Platform): Promise<string> =>
  deps.store.workloadAccounts.ensure({ workspace, workload: uid, name: `${kind} ${name}`, scopes: WORKLOAD_SCOPES });

export function credentialsOf(id: string, copy: string, deps: Platform): Record<string, string> {
  return { BL_CLIENT_CREDENTIALS: Buffer.from(`${id}:${copySecret(deps.keyFor, id, copy)}`).toString("base64") };
}

/** Identifies a task by its place in its execution; any other copy is identified by its uid. */
export const taskCopy = (executionId: string, index: number, uid: string): string => `${executionId}/${index}/${uid}`;

export const createCopyCheck =
  ({ store }: Pick<Platform, "store">) =>
  async (workload: string, copy: string): Promise<boolean> => {
    const resource = await store.resources.getAcrossWorkspaces(workload);
    if (!resource || resource.retired) return false;
    if (resource.kind !== "job") return (stateOf(resource).copies ?? []).some(({ uid }) => uid === copy);
    const [executionId = "", index, uid] = copy.split("/");
    const [task] = await store.executions.tasksOf(executionId, Number(index), 1);
    return task?.status === "running" && task.workload === uid;
  };
