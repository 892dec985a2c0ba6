/**
 * Drives of a running sandbox. The platform decides which drives a sandbox may mount, because the daemon inside the
 * sandbox is not trusted. A mount is stored as intent in the sandbox's state; the sandbox's reconciler performs it, and
 * repeats it after each start.
 */
import { z } from "zod";
import { linksOf } from "../../contract/references.ts";
import { randomWord } from "../../lib/ids.ts";
import { mountsFromAfar } from "../../node/placement.ts";
import type { Transaction } from "../../store/database/database.ts";
import { ofKind, type Resource } from "../../store/resources/resource.ts";
import type { Platform, Settings } from "../port.ts";
import { isSameRegion } from "../region.ts";
import { type Sandbox, sandbox as sandboxKind } from "../sandbox/kind.ts";
import { type Drive, drive as driveKind } from "./kind.ts";
import type { DriveMountIntent } from "./mount-intent.ts";
import { type DriveAccess, driveAccess, isWithin, normalized, workloadLabels } from "./permissions.ts";

export interface MountAnswer {
  status: number;
  body: Record<string, unknown>;
}

/** How long a mount request waits for the reconciler; after that it is answered as failed. */
const MOUNT_WAIT_MS = 30_000;
/** Drives per sandbox: each one is a mount in the sandbox's namespace. The driver's own limit also counts volumes. */
export const DRIVE_MOUNTS_MAX = 16;
const MOUNT_PATH_MAX = 512;

const mountRequest = z.object({
  driveName: z
    .string()
    .max(128)
    .regex(/^[a-zA-Z0-9][a-zA-Z0-9_-]*$/, "must be letters, digits, hyphens and underscores"),
  mountPath: z.string().min(1).max(MOUNT_PATH_MAX).transform(normalized).refine(isPlain, "must not contain .."),
  drivePath: z
    .string()
    .max(MOUNT_PATH_MAX)
    .startsWith("/", "must start with /")
    .transform(normalized)
    .refine(isPlain, "must not contain ..")
    .default("/"),
  readOnly: z.boolean().default(false),
  uidMap: z.literal("", "is not possible here: files keep their owners").optional(),
  gidMap: z.literal("", "is not possible here: files keep their owners").optional(),
});

export type SandboxRef = Pick<Resource, "workspace" | "uid">;

/** Answers `/drives/mount…` at a sandbox's address. */
export function createDriveMounts({ store, settings, nodes }: Pick<Platform, "store" | "settings" | "nodes">) {
  const list = async ({ workspace, uid }: SandboxRef): Promise<MountAnswer> => {
    const sandbox = await store.resources.getByUid(workspace, uid);
    const mounts = sandbox ? mountsOf(sandbox) : [];
    return ok({ mounts: mounts.filter(({ phase }) => phase === "mounted").map(shown) });
  };

  async function mount(ref: SandboxRef, body: unknown): Promise<MountAnswer> {
    const parsed = mountRequest.safeParse(body);
    if (!parsed.success) return failure(400, describe(parsed.error));
    const wish = parsed.data;
    const scope = { workspace: ref.workspace, kind: driveKind.name, parent: "" };
    const found = await store.resources.get(scope, wish.driveName);
    const drive = found && ofKind(driveKind, found);
    if (!drive || drive.deletedAt !== null) return failure(500, `drive '${wish.driveName}' does not exist`);
    const id = randomWord(12);
    const decided = await store.write(async (tx): Promise<MountAnswer | DriveMountIntent> => {
      let verdict: MountAnswer | DriveMountIntent = failure(500, "the sandbox is gone");
      const next = await store.resources.modify(tx, ref.workspace, ref.uid, (sandbox) => {
        const away = nodeElsewhere(drive, sandbox.node);
        if (away !== undefined && !mountsFromAfar(nodes.list())) {
          verdict = failure(409, `drive '${wish.driveName}' is on another node than this sandbox`);
          return null;
        }
        const access = drivePermission(drive, sandbox, wish.drivePath, settings);
        if (typeof access === "string") {
          verdict = failure(500, access);
          return null;
        }
        const { driveName, mountPath, drivePath } = wish;
        const readOnly = wish.readOnly || access.mode === "read";
        const what = { drive: drive.uid, driveName, drivePath, ...(away !== undefined && { node: away }) };
        const intent = { id, ...what, mountPath, readOnly, phase: "wanted" as const };
        verdict = place(sandbox, intent);
        if ("status" in verdict || verdict.id !== id) return null;
        const others = mountsOf(sandbox).filter((each) => each.mountPath !== mountPath);
        return { state: { ...sandbox.state, driveMounts: [...others, intent] } };
      });
      if (next) await linkDrives(tx, next, { store });
      return verdict;
    });
    if ("status" in decided) return decided;
    return settled(ref, decided, (now) =>
      now?.phase === "mounted"
        ? ok({ success: true, message: "Drive mounted successfully", ...shown(now) })
        : failure(500, now?.error ?? "the mount was taken back"),
    );
  }

  async function unmount(ref: SandboxRef, encodedPath: string): Promise<MountAnswer> {
    const mountPath = decoded(encodedPath);
    if (mountPath === null) return failure(400, "mountPath: is not a path");
    let leaving: DriveMountIntent | null = null;
    await store.resources.update(ref.workspace, ref.uid, (sandbox) => {
      const found = mountsOf(sandbox).find((each) => each.mountPath === mountPath && each.phase !== "failed");
      if (!found) return null;
      const { error: _before, ...rest } = found;
      const changed: DriveMountIntent = { ...rest, phase: "leaving" };
      leaving = changed;
      return withMounts(sandbox, (all) => all.map((each) => (each.id === changed.id ? changed : each)));
    });
    if (!leaving) return failure(404, `nothing is mounted at ${mountPath}`);
    return settled(ref, leaving, (now) =>
      now
        ? failure(500, now.error ?? "the drive is still mounted")
        : ok({ success: true, message: "Drive unmounted successfully", mountPath }),
    );
  }

  /** Waits until the reconciler has performed or refused the mount request. */
  async function settled(
    { workspace, uid }: SandboxRef,
    { id, phase }: DriveMountIntent,
    answer: (now: DriveMountIntent | null) => MountAnswer,
  ): Promise<MountAnswer> {
    const find = (sandbox: Resource | null): DriveMountIntent | null =>
      (sandbox && sandbox.deletedAt === null && mountsOf(sandbox).find((each) => each.id === id)) || null;
    const isSettled = (now: DriveMountIntent | null): boolean => now === null || now.phase !== phase;
    const signal = AbortSignal.timeout(MOUNT_WAIT_MS);
    try {
      if (phase === "mounted") return answer(find(await store.resources.getByUid(workspace, uid)));
      return answer(find(await store.resources.waitFor(workspace, uid, (now) => isSettled(find(now)), { signal })));
    } catch (error) {
      if (!signal.aborted) throw error;
      return failure(500, `the sandbox did not finish within ${MOUNT_WAIT_MS / 1000} seconds`);
    }
  }

  return { list, mount, unmount };
}

/** How a workload may use a path of a drive, or a message that says why it may not. */
export function drivePermission(
  drive: Drive,
  workload: Resource,
  drivePath: string,
  settings: Pick<Settings, "region" | "regionAliases" | "brand">,
): DriveAccess | string {
  const { name } = drive;
  const { kind } = workload;
  if (workload.deletedAt !== null) return `the ${kind} is being deleted`;
  const region = workload.spec.region ?? settings.region;
  if (!isSameRegion(drive.spec.region, region, settings))
    return `drive '${name}' is in region ${drive.spec.region}, not in ${region}`;
  const labels = workloadLabels(workload, settings.brand);
  const access = driveAccess(drive.spec.permissions, labels);
  if (!access) return `access denied: no permission of drive '${name}' matches the labels of this ${kind}`;
  return isWithin(drivePath, access.path)
    ? access
    : `access denied: this ${kind} may use ${access.path} of drive '${name}', not ${drivePath}`;
}

/** The node of a drive, where it is not the one of the workload that mounts it. */
export const nodeElsewhere = (drive: Pick<Resource, "node">, node: string | null): string | undefined =>
  drive.node === null || drive.node === node ? undefined : drive.node;

export type DriveMounts = ReturnType<typeof createDriveMounts>;

export const mountsOf = ({ state }: Pick<Sandbox, "state">): DriveMountIntent[] => state.driveMounts ?? [];

/** Replaces the mounts in a sandbox's state and keeps the rest. */
export const withMounts = (
  sandbox: Sandbox,
  change: (mounts: DriveMountIntent[]) => DriveMountIntent[],
): { state: Record<string, unknown> } => ({
  state: { ...sandbox.state, driveMounts: change(mountsOf(sandbox)) },
});

/** Links the drives to the sandbox, so that a mounted drive cannot be deleted. */
export const linkDrives = (tx: Transaction, sandbox: Resource, { store }: Pick<Platform, "store">): Promise<void> =>
  store.links.replace(tx, sandbox, linksOf(sandbox, sandboxKind.references));

/** Returns the requested mount, the identical mount that already exists, or a refusal. */
function place(sandbox: Sandbox, wish: DriveMountIntent): MountAnswer | DriveMountIntent {
  const all = mountsOf(sandbox).filter(({ phase }) => phase !== "failed");
  const there = all.find(({ mountPath }) => mountPath === wish.mountPath);
  const { volumes = [] } = sandbox.spec;
  if (volumes.some(({ mountPath }) => normalized(mountPath) === wish.mountPath))
    return failure(409, `a volume is mounted at ${wish.mountPath}`);
  if (!there && all.length >= DRIVE_MOUNTS_MAX)
    return failure(400, `a sandbox cannot have more than ${DRIVE_MOUNTS_MAX} drives mounted`);
  if (!there) return wish;
  const same =
    there.phase !== "leaving" &&
    there.drive === wish.drive &&
    there.drivePath === wish.drivePath &&
    there.readOnly === wish.readOnly;
  return same ? there : failure(409, `${wish.mountPath} is already in use by drive '${there.driveName}'`);
}

const ok = (body: Record<string, unknown>): MountAnswer => ({ status: 200, body });
const failure = (status: number, error: string): MountAnswer => ({ status, body: { error } });

const shown = ({ driveName, mountPath, drivePath, readOnly }: DriveMountIntent): Record<string, unknown> => ({
  driveName,
  mountPath,
  drivePath,
  readOnly,
  uidMap: "",
  gidMap: "",
});

const describe = ({ issues }: z.ZodError): string =>
  issues.map(({ path, message }) => `${path.join(".") || "body"}: ${message}`).join("; ");

function isPlain(path: string): boolean {
  return !path.split("/").includes("..") && !path.includes("\0");
}

function decoded(encoded: string): string | null {
  try {
    const path = normalized(decodeURIComponent(encoded));
    return path.length <= MOUNT_PATH_MAX && isPlain(path) ? path : null;
  } catch {
    return null;
  }
}
