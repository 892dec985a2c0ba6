/** Ends uploads in parts that are too old, also in drives that nobody has opened by S3 since the server started. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { drive } from "../kinds/drive/kind.ts";
import type { KindTask } from "../kinds/kind-task.ts";
import type { Deps } from "../kinds/port.ts";
import { HOUR_MS } from "../lib/time/clock.ts";
import { NO_METER } from "../s3/files/use-meter.ts";

const PAGE = 500;

type UploadDeps = Pick<Deps, "store" | "driver" | "nodes" | "clock">;

export const s3UploadTasks = (deps: UploadDeps): KindTask[] => [
  {
    name: `end-old-uploads/${deps.nodes.self.id}`,
    everyMs: HOUR_MS,
    run: (signal) => endOldUploads(deps, signal),
  },
];

export async function endOldUploads({ store, driver, nodes, clock }: UploadDeps, signal: AbortSignal): Promise<void> {
  const drives = await driver.capability("drives");
  if (drives === null) return;
  for (let after = ""; ; ) {
    const page = await store.resources.listAcrossWorkspaces(drive.name, after, PAGE);
    for (const { uid, node } of page) {
      signal.throwIfAborted();
      if (node !== null && node !== nodes.self.id && !nodes.shared) continue;
      const folders = await drives.folders(uid);
      const uploads = folders && join(folders.work, "uploads");
      if (uploads === null || !existsSync(uploads)) continue;
      const { PartUploads } = await import("../s3/files/part-uploads.ts"); // lazy: few servers have the door
      // The next count of the drive finds that the parts are gone.
      await new PartUploads(uploads, { clock, meter: NO_METER }).endOld();
    }
    after = page.at(-1)?.uid ?? "";
    if (page.length < PAGE) return;
  }
}
