/**
 * A backup that a server starts, in a process of its own: reading and sealing files keeps a core busy, and requests must
 * not wait for it. The first message says what to do; the answer is the only one that goes back.
 */
import { setPriority } from "node:os";
import type { Config } from "../../config.ts";
import { PlatformError } from "../../contract/errors.ts";
import { placeOf } from "./catalogue.ts";
import { backupEverything, keyOfData, type Teller } from "./everything.ts";
import { takePart } from "./part.ts";
import { Repository } from "./repository/repository.ts";

export type BackupTask = { kind: "everything"; keep: number } | { kind: "part"; backup: string; target: string };

export interface BackupOrder {
  config: Config;
  task: BackupTask;
}

export type BackupAnswer = { lines: string[] } | { failure: string };

/** Other processes go first. */
const NICE = 10;
const quiet: Teller = { progress: () => {}, note: () => {} };

process.once("message", (order: BackupOrder) => void answer(order));
// Without its server a backup would go on unseen.
process.once("disconnect", () => process.exit(1));

async function answer(order: BackupOrder): Promise<void> {
  setPriority(NICE);
  const said: BackupAnswer = await work(order).then(
    (lines) => ({ lines }),
    (error: unknown) => ({ failure: error instanceof Error ? error.message : String(error) }),
  );
  process.send?.(said, () => process.exit(0));
}

async function work({ config, task }: BackupOrder): Promise<string[]> {
  if (task.kind === "everything")
    return backupEverything({ config, target: undefined, keep: task.keep, skipLost: false, tell: quiet });
  const place = placeOf(config, undefined);
  if (place.shown !== task.target)
    throw new PlatformError(
      "conflict",
      `its BERTH_BACKUP_TARGET is ${place.shown}, and the backup goes to ${task.target}`,
    );
  const repository = new Repository(place, keyOfData(config));
  const progress = { read: () => {}, sent: () => {}, unit: () => {} };
  const { units } = await takePart({ repository, backup: task.backup, dataDir: config.data, progress });
  return [`${units} folders`];
}
