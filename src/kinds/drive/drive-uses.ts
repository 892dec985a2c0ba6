/**
 * Counts what drives hold, where the operator has set a quota for them: when a workspace first writes through S3 after a
 * start, and every five minutes. Each server counts its own drives and writes the result into their records, from which
 * the other servers take it.
 */
import { join } from "node:path";
import { folderUse, type Use } from "../../lib/disk/folder-use.ts";
import { isLimited } from "../../lib/schemas/drive-quota.ts";
import { MINUTE_MS } from "../../lib/time/clock.ts";
import { ofKind } from "../../store/resources/resource.ts";
import type { KindTask } from "../kind-task.ts";
import type { Deps, Platform } from "../port.ts";
import { type Drive, drive } from "./kind.ts";
import { WorkspaceUse } from "./workspace-use.ts";

const COUNT_MS = 5 * MINUTE_MS;
const PAGE = 500;

type UseDeps = Pick<Deps, "store" | "driver" | "nodes" | "settings" | "log">;

export class DriveUses {
  readonly #deps: UseDeps;
  readonly #workspaces = new Map<string, Promise<WorkspaceUse>>();

  constructor(deps: UseDeps) {
    this.#deps = deps;
  }

  get isLimited(): boolean {
    return isLimited(this.#deps.settings.driveQuota);
  }

  /** Null where there is no quota, and nothing is counted. */
  async of(workspace: string): Promise<WorkspaceUse | null> {
    if (!this.isLimited) return null;
    const known = this.#workspaces.get(workspace) ?? this.#count(workspace);
    this.#workspaces.set(workspace, known);
    known.catch(() => this.#workspaces.delete(workspace));
    return known;
  }

  tasks(): KindTask[] {
    const name = `count-drives/${this.#deps.settings.nodeId}`;
    return this.isLimited ? [{ name, everyMs: COUNT_MS, run: (signal) => this.recount(signal) }] : [];
  }

  /** Counts all drives of this server, and puts the running counts right. */
  async recount(signal?: AbortSignal): Promise<void> {
    const { store } = this.#deps;
    const ends = new Map<string, (counted: Use) => void>();
    for (const [workspace, known] of this.#workspaces) ends.set(workspace, (await known).beginRecount());
    const totals = new Map<string, Use>();
    for (let after = ""; ; ) {
      const page = await store.resources.listAcrossWorkspaces(drive.name, after, PAGE);
      for (const one of page) {
        signal?.throwIfAborted();
        add(totalOf(totals, one.workspace), await this.#counted(ofKind(drive, one), signal));
      }
      after = page.at(-1)?.uid ?? "";
      if (page.length < PAGE) break;
    }
    for (const [workspace, end] of ends) end(totalOf(totals, workspace));
  }

  async #count(workspace: string): Promise<WorkspaceUse> {
    const total: Use = { bytes: 0, objects: 0 };
    for (const one of await drivesOf(workspace, this.#deps)) add(total, await this.#counted(one));
    return new WorkspaceUse(this.#deps.settings.driveQuota, total);
  }

  /** A drive that cannot be counted now holds what its record says, and does not keep others from being counted. */
  async #counted(resource: Drive, signal?: AbortSignal): Promise<Use> {
    try {
      return await this.#countedNow(resource, signal);
    } catch (error) {
      signal?.throwIfAborted();
      this.#deps.log.warn({ err: error, drive: resource.uid }, "a drive could not be counted");
      return recordedUse(resource);
    }
  }

  /** A drive of another server holds what its record says. */
  async #countedNow(resource: Drive, signal?: AbortSignal): Promise<Use> {
    const { store, driver, nodes } = this.#deps;
    const { workspace, uid, node, deletedAt, retired } = resource;
    if (deletedAt !== null || retired) return { bytes: 0, objects: 0 };
    if (node !== null && node !== nodes.self.id && !nodes.shared) return recordedUse(resource);
    const drives = await driver.capability("drives");
    if (drives === null || (await drives.bytes(uid)) === null) return { bytes: 0, objects: 0 };
    const folders = await drives.folders(uid);
    if (folders === null) return recordedUse(resource);
    const files = await folderUse(folders.files, signal);
    const parts = await folderUse(join(folders.work, "uploads"), signal);
    const use = { bytes: files.bytes + parts.bytes, objects: files.objects };
    await store.resources.update(workspace, uid, ({ state }) =>
      state.usedBytes === use.bytes && state.usedObjects === use.objects
        ? null
        : { state: { ...state, usedBytes: use.bytes, usedObjects: use.objects } },
    );
    return use;
  }
}

/** What the drives of a workspace hold, as their records say. */
export async function recordedUses(workspace: string, deps: Pick<Platform, "store">): Promise<Use> {
  const total: Use = { bytes: 0, objects: 0 };
  for (const one of await drivesOf(workspace, deps)) add(total, recordedUse(one));
  return total;
}

export function recordedUse({ state }: Pick<Drive, "state">): Use {
  const { usedBytes: bytes = 0, usedObjects: objects = 0 } = state;
  return { bytes, objects };
}

/** Drives of a workspace that are counted: more than any workspace has. */
const DRIVES_MAX = 10_000;

const drivesOf = async (workspace: string, { store }: Pick<Platform, "store">): Promise<Drive[]> =>
  (await store.resources.listNested(workspace, drive.name, DRIVES_MAX)).map((each) => ofKind(drive, each));

function totalOf(totals: Map<string, Use>, workspace: string): Use {
  const total = totals.get(workspace) ?? { bytes: 0, objects: 0 };
  totals.set(workspace, total);
  return total;
}

function add(total: Use, { bytes, objects }: Use): void {
  total.bytes += bytes;
  total.objects += objects;
}
