/** Drives that a workload names in its specification, mounted when a copy of it starts. */

import { PlatformError } from "../../contract/errors.ts";
import { plainPath } from "../../contract/mount-path.ts";
import { need } from "../../node/capabilities/need.ts";
import type { Mount } from "../../node/workload.ts";
import type { Resource } from "../../store/resources/resource.ts";
import { drivePermission } from "../drive/mounts.ts";
import type { Deps } from "../port.ts";

interface DriveAttachment {
  name: string;
  mountPath: string;
  drivePath?: string;
  readOnly?: boolean;
}

/**
 * Makes a drive's storage at its first mount. Refuses the start when the drive's permissions do not allow the mount.
 */
export async function driveMounts(owner: Resource, spec: Record<string, unknown>, deps: Deps): Promise<Mount[]> {
  const attachments = (spec.drives ?? []) as DriveAttachment[];
  const mounts: Mount[] = [];
  for (const { name, mountPath, drivePath = "/", readOnly = false } of attachments) {
    const drive = await deps.store.resources.get({ workspace: owner.workspace, kind: "drive", parent: "" }, name);
    if (!drive || drive.deletedAt !== null) throw new PlatformError("not_found", `Drive '${name}' does not exist.`);
    const access = drivePermission(drive, owner, drivePath, deps.settings);
    if (typeof access === "string") throw new PlatformError("forbidden", `It cannot start: ${access}.`);
    await (await need(deps.driver, "drives")).create(drive.uid);
    mounts.push({
      source: { drive: drive.uid, ...(drivePath === "/" ? {} : { path: drivePath }) },
      path: plainPath(mountPath),
      readOnly: readOnly || access.mode === "read",
      name,
    });
  }
  return mounts;
}
