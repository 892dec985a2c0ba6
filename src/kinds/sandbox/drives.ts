/** Performs the drive mounts that drive/mounts.ts stored for one sandbox. */
import { need } from "../../node/capabilities/need.ts";
import type { Mount } from "../../node/workload.ts";
import { ofKind, type Resource } from "../../store/resources/resource.ts";
import type { DriveMountIntent } from "../drive/mount-intent.ts";
import { linkDrives, mountsOf, withMounts } from "../drive/mounts.ts";
import type { Deps, ReconcileContext } from "../port.ts";
import { type Sandbox, sandbox as sandboxKind } from "./kind.ts";

/** Characters of a driver's error message that are stored and shown to the caller. */
const REASON_MAX = 500;

/** Drives that were mounted before are mounted at the start; new mount requests are tried on the running sandbox. */
export async function provenDriveMounts(sandbox: Sandbox, deps: Deps): Promise<Mount[]> {
  const proven = mountsOf(sandbox).filter(({ phase }) => phase === "mounted");
  for (const { drive, node } of proven) if (node === undefined) await (await need(deps.driver, "drives")).create(drive);
  return proven.map(mountOf);
}

export async function applyDrives(sandbox: Sandbox, { deps }: ReconcileContext): Promise<void> {
  const wanted = mountsOf(sandbox);
  const outcomes = new Map<string, DriveMountIntent | null>();
  await unmountStrays(sandbox, wanted, deps);
  for (const intent of wanted) {
    if (intent.phase !== "failed") outcomes.set(intent.id, await applyOne(sandbox, intent, deps));
  }
  await deps.store.write(async (tx) => {
    const next = await deps.store.resources.modify(tx, sandbox.workspace, sandbox.uid, (current) =>
      current.retired
        ? null
        : withMounts(ofKind(sandboxKind, current), (all) => all.flatMap((each) => outcomeOf(each, wanted, outcomes))),
    );
    if (next && !next.retired) await linkDrives(tx, next, deps);
  });
}

/** A mount request that changed meanwhile is left for the next round. */
function outcomeOf(
  now: DriveMountIntent,
  before: readonly DriveMountIntent[],
  outcomes: ReadonlyMap<string, DriveMountIntent | null>,
): DriveMountIntent[] {
  const outcome = outcomes.get(now.id);
  if (outcome === undefined || before.find(({ id }) => id === now.id)?.phase !== now.phase) return [now];
  return outcome === null ? [] : [outcome];
}

/** The mount after the attempt; null = it was unmounted and its entry can be removed. */
async function applyOne(
  { uid }: Resource,
  intent: DriveMountIntent,
  { driver, log }: Deps,
): Promise<DriveMountIntent | null> {
  const leaving = intent.phase === "leaving";
  try {
    if (leaving) {
      await (await need(driver, "hotMounts")).unmount(uid, intent.mountPath);
      return null;
    }
    const hotMounts = await need(driver, "hotMounts");
    if (intent.node === undefined) await (await need(driver, "drives")).create(intent.drive);
    await hotMounts.mount(uid, mountOf(intent));
    return { ...intent, phase: "mounted" };
  } catch (error) {
    log.warn({ err: error, uid, drive: intent.drive, path: intent.mountPath }, "a drive could not be moved");
    const reason = (error instanceof Error ? error.message : String(error)).slice(0, REASON_MAX);
    return { ...intent, phase: leaving ? "mounted" : "failed", error: reason };
  }
}

async function unmountStrays({ uid }: Resource, wanted: readonly DriveMountIntent[], { driver }: Deps): Promise<void> {
  const known = new Set(wanted.filter(({ phase }) => phase !== "failed").map(({ mountPath }) => mountPath));
  for (const { source, path, platform } of (await driver.observe(uid))?.mounts ?? [])
    if ("drive" in source && !platform && !known.has(path)) await (await need(driver, "hotMounts")).unmount(uid, path);
}

const mountOf = ({ drive, node, driveName, drivePath, mountPath, readOnly }: DriveMountIntent): Mount => ({
  source: { drive, ...(drivePath === "/" ? {} : { path: drivePath }), ...(node === undefined ? {} : { node }) },
  path: mountPath,
  readOnly,
  name: driveName,
});
