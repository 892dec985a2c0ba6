/**
 * Decides whether another node may mount a part of a drive of this one: only for a workload that is on that node and may
 * use the drive in this way. What the other node says of the workload does not count; records do.
 */
import { PlatformError } from "../../contract/errors.ts";
import { need } from "../../node/capabilities/need.ts";
import { ofKind, type Resource } from "../../store/resources/resource.ts";
import type { Deps } from "../port.ts";
import { sandbox as sandboxKind } from "../sandbox/kind.ts";
import { workloadSpec } from "../workload/spec.ts";
import { type Drive, drive as driveKind } from "./kind.ts";
import { drivePermission, mountsOf } from "./mounts.ts";
import { normalized } from "./permissions.ts";

export interface NodeMount {
  /** The node that mounts. */
  from: string;
  drive: string;
  path: string;
  readOnly: boolean;
}

type MountDeps = Pick<Deps, "store" | "settings" | "nodes" | "driver">;

/** The host folder of the drive's files, and whose they are. Refuses what no workload of that node may mount. */
export async function filesForNode(mount: NodeMount, deps: MountDeps): Promise<{ files: string; workspace: string }> {
  const found = await deps.store.resources.getAcrossWorkspaces(mount.drive);
  if (found?.kind !== driveKind.name || found.retired || found.deletedAt !== null)
    throw new PlatformError("not_found", "There is no such drive.");
  const drive = ofKind(driveKind, found);
  if (drive.node !== deps.nodes.self.id) throw new PlatformError("conflict", "The drive is on another node.");
  if (!(await isUsed(drive, mount, deps)))
    throw new PlatformError("forbidden", "No workload of that node may use the drive in this way.");
  const drives = await need(deps.driver, "drives");
  await drives.create(drive.uid);
  const folders = await drives.folders(drive.uid);
  if (!folders) throw new PlatformError("unprocessable", "The drive's files cannot be reached.");
  return { files: folders.files, workspace: drive.workspace };
}

async function isUsed(drive: Drive, mount: NodeMount, { store, settings }: MountDeps): Promise<boolean> {
  const { workspace, name } = drive;
  const users = (await store.links.usersOf(workspace, driveKind.name, [name])).get(name) ?? [];
  for (const { uid } of users) {
    const workload = await store.resources.getByUid(workspace, uid);
    if (!workload || workload.node !== mount.from || workload.retired || workload.deletedAt !== null) continue;
    if (mountsIn(workload, drive, settings).some((each) => includes(each, mount))) return true;
  }
  return false;
}

interface Part {
  path: string;
  readOnly: boolean;
}

const includes = (has: Part, { path, readOnly }: NodeMount): boolean =>
  has.path === normalized(path) && has.readOnly === readOnly;

/** What a workload mounts of the drive. Permissions of a sandbox were read when it asked for the mount. */
function mountsIn(workload: Resource, drive: Drive, settings: MountDeps["settings"]): Part[] {
  if (workload.kind === sandboxKind.name)
    return mountsOf(ofKind(sandboxKind, workload))
      .filter((each) => each.drive === drive.uid && each.phase !== "failed")
      .map(({ drivePath, readOnly }) => ({ path: normalized(drivePath), readOnly }));
  return (workloadSpec(workload.spec).drives ?? [])
    .filter(({ name }) => name === drive.name)
    .flatMap(({ drivePath = "/", readOnly = false }) => {
      const access = drivePermission(drive, workload, drivePath, settings);
      if (typeof access === "string") return [];
      return [{ path: normalized(drivePath), readOnly: readOnly || access.mode === "read" }];
    });
}
