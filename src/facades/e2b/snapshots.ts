/** Snapshots, forks and templates in the words of E2B. */
import type { Answered, Control, Endpoint } from "./control.ts";
import { Refusal } from "./refusal.ts";
import type { Place } from "./sandbox-id.ts";
import { endOf, type Shown, withEnd } from "./sandbox-wire.ts";

/** E2B's ids of snapshots are unique, so this façade's ids name the sandbox, too. */
const SNAPSHOT_ID = /^(.+):(snap_[A-Za-z0-9]+)$/;

const CONFLICT = 409;

interface ShownSnapshot {
  id: string;
  name?: string;
  status?: string;
  error?: string;
}

export interface SnapshotPlace {
  sandbox: string;
  snapshot: string;
}

/** Null for what is not the id of a snapshot. */
export function snapshotIn(id: string): SnapshotPlace | null {
  const [, sandbox, snapshot] = SNAPSHOT_ID.exec(id) ?? [];
  return sandbox === undefined || snapshot === undefined ? null : { sandbox, snapshot };
}

const toWire = (sandboxID: string, { id, name }: ShownSnapshot): object => ({
  snapshotID: `${sandboxID}:${id}`,
  names: name === undefined ? [] : [name],
});

export const createSnapshot: Endpoint = async (control) => {
  const [sandboxID = ""] = control.params;
  const { name: sandboxName, workspace } = await control.placeOf(sandboxID);
  const { name } = control.body;
  const made = await control.manage<ShownSnapshot>("snapshotCreate", {
    ...{ params: { sandboxName }, workspace },
    body: typeof name === "string" ? { name } : {},
  });
  if (made.status === "failed") throw new Refusal(422, made.error ?? "The snapshot could not be taken.");
  return { status: 201, body: toWire(sandboxID, made) };
};

export const listSnapshots: Endpoint = async (control) => {
  const sandboxID = control.query.get("sandboxID");
  if (sandboxID === null) throw new Refusal(400, "Name a sandbox: the snapshots of all sandboxes cannot be listed.");
  const wanted = control.query.get("name");
  const { name: sandboxName, workspace } = await control.placeOf(sandboxID);
  const found = await control.manage<{ data?: ShownSnapshot[] } | ShownSnapshot[]>("snapshotList", {
    ...{ params: { sandboxName }, workspace },
  });
  const all = Array.isArray(found) ? found : (found.data ?? []);
  const shown = all.filter(({ name }) => wanted === null || name === wanted);
  return { status: 200, body: shown.map((snapshot) => toWire(sandboxID, snapshot)) };
};

/** E2B deletes snapshots as templates; templates themselves are images, which have owners of their own. */
export const deleteTemplate: Endpoint = async (control) => {
  const place = snapshotIn(control.params[0] ?? "");
  if (place === null) throw new Refusal(400, "Templates are images here: delete the image with `berth image delete`.");
  const { name: sandboxName, workspace } = await control.placeOf(place.sandbox);
  await control.manage("snapshotDelete", { params: { sandboxName, snapshotId: place.snapshot }, workspace });
  return { status: 204 };
};

/** A new sandbox with the files of another one, as they are now or in a snapshot. */
export async function forked(
  control: Control,
  { name: sandboxName, workspace }: Place,
  { snapshot, timeout, index = 0 }: { snapshot?: string; timeout: number | undefined; index?: number },
): Promise<Shown> {
  const targetName = control.nameFor(index);
  const body = { targetName, targetType: "sandbox", ...(snapshot === undefined ? {} : { snapshotId: snapshot }) };
  const params = { sandboxName: targetName };
  const get = (): Promise<Shown> => control.manage<Shown>("sandboxGet", { params, workspace });
  return madeOnce(async () => {
    await control.manage("sandboxFork", { params: { sandboxName }, workspace, body });
    return control.manage<Shown>("sandboxUpdate", {
      ...{ params, workspace },
      body: withEnd(await get(), endOf(timeout, control.nowMs)),
    });
  }, get);
}

/** What this request makes, or what an earlier try of it has made. */
export async function madeOnce(make: () => Promise<Shown>, get: () => Promise<Shown>): Promise<Shown> {
  try {
    return await make();
  } catch (error) {
    if (!(error instanceof Refusal && error.status === CONFLICT)) throw error;
    return get().catch(() => {
      throw error; // a conflict about something else
    });
  }
}

interface ShownImage {
  metadata: { name: string; createdAt?: string; updatedAt?: string };
}

/** Images that sandboxes can be made from. */
export const listTemplates: Endpoint = async ({ manage }): Promise<Answered> => {
  const found = await manage<{ data?: ShownImage[] } | ShownImage[]>("imageList");
  const images = Array.isArray(found) ? found : (found.data ?? []);
  return {
    status: 200,
    body: images.map(({ metadata: { name, createdAt, updatedAt } }) => ({
      ...{
        templateID: name,
        aliases: [name],
        names: [name],
        public: false,
        createdAt,
        updatedAt: updatedAt ?? createdAt,
      },
      ...{ buildID: "", buildStatus: "ready", buildCount: 1, spawnCount: 0, cpuCount: 0, memoryMB: 0, diskSizeMB: 0 },
    })),
  };
};
