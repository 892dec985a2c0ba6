/** Shares of workspaces in what all logs have together: memory on the way to the disk, and room on the disk. */
import type { Segment, WorkloadLog } from "./workload-log.ts";

/** Bytes that wait for the disk. */
export class PendingBytes {
  readonly #of = new Map<string, number>();
  #total = 0;

  add(workspace: string, bytes: number): void {
    const sum = (this.#of.get(workspace) ?? 0) + bytes;
    this.#total += bytes;
    if (sum > 0) this.#of.set(workspace, sum);
    else this.#of.delete(workspace);
  }

  /** Beyond `max` a workspace has room as long as it has less than an equal share. */
  hasRoom(workspace: string, max: number): boolean {
    if (this.#total < max) return true;
    const own = this.#of.get(workspace) ?? 0;
    return own < max / (this.#of.size + (own > 0 ? 0 : 1));
  }
}

export interface KeptSegment extends Segment {
  log: WorkloadLog;
}

/** Segments on the disk. */
export class KeptSegments {
  readonly #of = new Map<string, { bytes: number; segments: KeptSegment[] }>();

  add(workspace: string, segment: KeptSegment): void {
    const kept = this.#of.get(workspace) ?? { bytes: 0, segments: [] };
    kept.segments.push(segment);
    kept.bytes += segment.bytes;
    this.#of.set(workspace, kept);
  }

  /** What has to go so that `max` bytes are left: always the oldest of the workspace that has most. */
  beyond(max: number): KeptSegment[] {
    const all = [...this.#of.values()];
    for (const { segments } of all) segments.sort((a, b) => b.writtenMs - a.writtenMs);
    const removed: KeptSegment[] = [];
    for (let bytes = all.reduce((sum, one) => sum + one.bytes, 0); bytes > max; ) {
      const most = all.reduce((found, one) => (one.bytes > found.bytes ? one : found));
      const oldest = most.segments.pop();
      if (!oldest) break;
      most.bytes -= oldest.bytes;
      bytes -= oldest.bytes;
      removed.push(oldest);
    }
    return removed;
  }
}
