/**
 * What a caller may do with a drive. An admin can change the permissions and so gets the whole drive. The drive's
 * permissions decide for other callers: a workload is matched by its labels, a person or a service account like a
 * workload that has no labels.
 */
import type { SubjectType } from "../../contract/caller.ts";
import type { Role } from "../../contract/operation.ts";
import type { Platform } from "../port.ts";
import type { Drive } from "./kind.ts";
import { type DriveAccess, driveAccess, workloadLabels } from "./permissions.ts";

export interface DriveCaller {
  subject: string;
  subjectType: SubjectType;
  role: Role | null;
}

type AccessDeps = Pick<Platform, "store" | "settings">;

export async function callerAccess(caller: DriveCaller, drive: Drive, deps: AccessDeps): Promise<DriveAccess | null> {
  if (caller.subjectType === "workload") return workloadAccess(caller, drive, deps);
  const nobody = { workspace: drive.workspace, kind: "", name: "", metadata: {} };
  const labels = workloadLabels(nobody, deps.settings.brand);
  return driveAccess(caller.role === "admin" ? [] : drive.spec.permissions, labels);
}

async function workloadAccess(
  { subject }: DriveCaller,
  drive: Drive,
  { store, settings }: AccessDeps,
): Promise<DriveAccess | null> {
  const identity = await store.keys.getServiceAccount(drive.workspace, subject);
  const workload = identity?.workload && (await store.resources.getByUid(drive.workspace, identity.workload));
  return workload ? driveAccess(drive.spec.permissions, workloadLabels(workload, settings.brand)) : null;
}
