/** Drives that a workload names in its specification, mounted when a copy of it starts. */

import { PlatformError } from "../../contract/errors.ts";
import { plainPath } from "../../contract/mount-path.ts";
import { need } from "../../node/capabilities/need.ts";
import type { Mount } from "../../node/workload.ts";
import { ofKind, type Resource } from "../../store/resources/resource.ts";
import { drive as driveKind } from "../drive/kind.ts";
import { drivePermission, nodeElsewhere } from "../drive/mounts.ts";
import type { Deps } from "../port.ts";
import { workloadSpec } from "./spec.ts";

/**
 * Makes a drive's storage at its first mount. Refuses the start when the drive's permissions do not allow the mount.
 */
export async function driveMounts(owner: Resource, spec: Record<string, unknown>, deps: Deps): Promise<Mount[]> {
  const mounts: Mount[] = [];
  for (const { name, mountPath, drivePath = "/", readOnly = false } of workloadSpec(spec).drives ?? []) {
    const place = { workspace: owner.workspace, kind: driveKind.name, parent: "" };
    const drive = await deps.store.resources.get(place, name);
    if (!drive || drive.deletedAt !== null) throw new PlatformError("not_found", `Drive '${name}' does not exist.`);
    const access = drivePermission(ofKind(driveKind, drive), owner, drivePath, deps.settings);
    if (typeof access === "string") throw new PlatformError("forbidden", `It cannot start: ${access}.`);
    const node = nodeElsewhere(drive, deps.nodes.shared ? drive.node : deps.nodes.self.id);
    if (node === undefined) await (await need(deps.driver, "drives")).create(drive.uid);
    const part = drivePath === "/" ? {} : { path: drivePath };
    mounts.push({
      source: { drive: drive.uid, ...part, ...(node === undefined ? {} : { node }) },
      path: plainPath(mountPath),
      readOnly: readOnly || access.mode === "read",
      name,
    });
  }
  return mounts;
}
