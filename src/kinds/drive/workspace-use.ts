/**
 * What the drives of one workspace hold, against its quota. Every write through S3 changes the running count; a recount
 * puts it right about the writes of mounts, which the platform does not see.
 */
import { bytesText } from "../../lib/bytes-text.ts";
import type { Use } from "../../lib/disk/folder-use.ts";
import type { DriveQuota } from "../../lib/schemas/drive-quota.ts";

export class WorkspaceUse {
  readonly #quota: DriveQuota;
  #total: Use;
  /** Changes since the last recount began. */
  #since: Use = { bytes: 0, objects: 0 };

  constructor(quota: DriveQuota, counted: Use) {
    this.#quota = quota;
    this.#total = counted;
  }

  /** Counts a write that is about to happen. Answers why it may not; nothing is counted then. */
  take(bytes: number, objects: number): string | null {
    const wish = { bytes: this.#total.bytes + bytes, objects: this.#total.objects + objects };
    const refusal =
      (bytes > 0 ? quotaRefusal(this.#quota, { ...wish, objects: 0 }) : null) ??
      (objects > 0 ? quotaRefusal(this.#quota, { ...wish, bytes: 0 }) : null);
    if (refusal === null) this.add(bytes, objects);
    return refusal;
  }

  /** Counts what has happened; negative for what was removed. */
  add(bytes: number, objects: number): void {
    for (const use of [this.#total, this.#since]) {
      use.bytes += bytes;
      use.objects += objects;
    }
  }

  /**
   * Call before files are counted; the answer takes the result, to which writes meanwhile are added. Deletes meanwhile
   * are not taken off: the count may have missed these files already, and who deletes at that time would win room.
   */
  beginRecount(): (counted: Use) => void {
    this.#since = { bytes: 0, objects: 0 };
    return (counted) => {
      const { bytes, objects } = this.#since;
      this.#total = { bytes: counted.bytes + Math.max(0, bytes), objects: counted.objects + Math.max(0, objects) };
    };
  }
}

/** Why drives of a workspace may not hold this much; null when they may. */
export function quotaRefusal(quota: DriveQuota, { bytes, objects }: Use): string | null {
  if (quota.bytes !== null && bytes > quota.bytes)
    return `The drives of this workspace may hold ${bytesText(quota.bytes)}, and this would be more. Delete files, or ask the operator for more.`;
  if (quota.objects !== null && objects > quota.objects)
    return `The drives of this workspace may hold ${quota.objects} objects, and this would be more. Delete some, or ask the operator for more.`;
  return null;
}
