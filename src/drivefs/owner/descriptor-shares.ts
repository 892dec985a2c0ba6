/**
 * Descriptors of this server that mounts of other nodes hold: open files and folders, and the root of each mount. A
 * server that has none left accepts no connection. So all mounts together get a part of them, and a workspace may take
 * one more only while it has fewer than are left: it never takes what another one needs.
 */
import { readFileSync } from "node:fs";

/** What mounts get of the open files that the system allows this process. */
const PART = 1 / 4;
/** Where the system does not tell. */
const OPEN_FILES_DEFAULT = 1024;

export interface DescriptorShare {
  /** False when there is no room for another one. */
  take(): boolean;
  give(): void;
}

export class DescriptorShares {
  readonly #total: number;
  readonly #taken = new Map<string, number>();
  #takenByAll = 0;

  constructor(total = Math.floor(openFilesMax() * PART)) {
    this.#total = total;
  }

  of(workspace: string): DescriptorShare {
    return {
      take: () => {
        const own = this.#taken.get(workspace) ?? 0;
        if (own >= this.#total - this.#takenByAll) return false;
        this.#taken.set(workspace, own + 1);
        this.#takenByAll += 1;
        return true;
      },
      give: () => {
        const left = (this.#taken.get(workspace) ?? 0) - 1;
        if (left > 0) this.#taken.set(workspace, left);
        else this.#taken.delete(workspace);
        this.#takenByAll -= 1;
      },
    };
  }
}

function openFilesMax(): number {
  try {
    const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
    return Number(soft ?? OPEN_FILES_DEFAULT);
  } catch {
    return OPEN_FILES_DEFAULT;
  }
}
