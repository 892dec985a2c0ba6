/** Backups that a server makes by itself: those of the schedule, and its own files when another server backs up. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "../config.ts";
import type { KindTask } from "../kinds/kind-task.ts";
import type { Log } from "../kinds/port.ts";
import { type Clock, DAY_MS, SECOND_MS } from "../lib/time/clock.ts";
import { cronTimes } from "../lib/time/cron.ts";
import type { BackupAnswer, BackupOrder, BackupTask } from "../operator/backup/backup-child.ts";
import { failureKey, type PartRequest, REQUESTS } from "../operator/backup/other-nodes.ts";
import type { Store } from "../store/store.ts";

export interface BackupsOptions {
  config: Config;
  store: Store;
  clock: Clock;
  log: Log;
  nodeId: string;
}

const CHILD = new URL("../operator/backup/backup-child.ts", import.meta.url);
/** A cron field counts minutes; a slot begins at most this late. */
const SCHEDULE_LOOK_MS = 15 * SECOND_MS;
const REQUEST_LOOK_MS = 2 * SECOND_MS;
/** As `operator/backup/units.ts` has it, which is loaded with the first backup. */
const WORK_FOLDER = join("runtime", "backup-work");
const SLOT = "backup-slot";
const NEVER = Number.MAX_SAFE_INTEGER;
const REASON_MAX = 500;

export function backupTasks(options: BackupsOptions): KindTask[] {
  const { config, store, nodeId } = options;
  const { backup_schedule: schedule, backup_target: target } = config;
  const asked = new Set<string>();
  return [
    ...(schedule !== undefined && target !== undefined
      ? [
          {
            name: "scheduled-backup",
            everyMs: SCHEDULE_LOOK_MS,
            run: (signal: AbortSignal) => backUpWhenDue(schedule, options, signal),
          },
        ]
      : []),
    ...(store.database.dialect === "postgres"
      ? [
          {
            name: `backup-part/${nodeId}`,
            everyMs: REQUEST_LOOK_MS,
            run: (signal: AbortSignal) => storeParts(asked, options, signal),
          },
        ]
      : []),
  ];
}

/** Removes what a backup left, mounts too, that was killed together with its server. Live backups keep their folders. */
export async function clearKilledBackups({ config, log }: Pick<BackupsOptions, "config" | "log">): Promise<void> {
  if (!existsSync(join(config.data, WORK_FOLDER))) return;
  const { clearWorkFolders } = await import("../operator/backup/units.ts");
  await clearWorkFolders(config.data).catch((error: unknown) =>
    log.error({ err: error }, "what a killed backup left could not be removed"),
  );
}

/** A slot that passed while no server ran is made up for. One that passes during a backup is left out. */
export async function backUpWhenDue(
  schedule: string,
  { config, store, clock, log }: BackupsOptions,
  signal: AbortSignal,
): Promise<void> {
  const next = cronTimes(schedule, "UTC");
  const isDue = (value: string | null): boolean => {
    const due = value === null ? null : next(Number(value));
    return due !== null && due <= clock.now();
  };
  const before = await store.records.read(SLOT);
  if (before !== null && !isDue(before)) return;
  const isMine = await store.records.update(SLOT, NEVER, (value) => ({
    value: value === null || isDue(value) ? String(clock.now()) : value,
    result: isDue(value),
  }));
  if (!isMine) return;
  const answer = await inChild({ config, task: { kind: "everything", keep: config.backup_keep } }, signal);
  if (signal.aborted) return;
  const failure = "failure" in answer ? answer.failure.slice(0, REASON_MAX) : null;
  if (failure === null) log.info({ backup: "lines" in answer ? answer.lines[0] : "" }, "the scheduled backup is made");
  else log.error({ reason: failure, target: config.backup_target }, "the scheduled backup failed");
  await recordOutcome(store, config.backup_target ?? "", failure);
}

/** The event that admins see, beside the line in the log. */
async function recordOutcome(store: Store, target: string, failure: string | null): Promise<void> {
  const [account] = await store.people.listAccountsAcrossUsers();
  await store.audit.record({
    ...{ actor: "", actorType: "platform", actorName: "platform", authMethod: "", keyId: null },
    action: "backup",
    target: failure === null ? target : `${target}: ${failure}`,
    ...{ accountId: account?.id ?? null, workspace: null },
    ...(failure === null ? { outcome: "ok", status: 200 } : { outcome: "failed", status: 500 }),
    ...{ sourceAddress: "", requestId: "" },
  });
}

async function storeParts(
  asked: Set<string>,
  { config, store, clock, log, nodeId }: BackupsOptions,
  signal: AbortSignal,
): Promise<void> {
  const requests = (await store.records.list(REQUESTS)).map((value) => JSON.parse(value) as PartRequest);
  for (const { backup, target, nodes } of requests) {
    if (!nodes.includes(nodeId) || asked.has(backup)) continue;
    asked.add(backup);
    const answer = await inChild({ config, task: { kind: "part", backup, target } }, signal);
    if (signal.aborted || !("failure" in answer)) continue;
    log.error({ reason: answer.failure, backup }, "the files of this node could not be backed up");
    const reason = answer.failure.slice(0, REASON_MAX);
    await store.records.update(failureKey(backup, nodeId), clock.now() + DAY_MS, () => ({
      value: reason,
      result: null,
    }));
  }
}

async function inChild(order: BackupOrder, signal: AbortSignal): Promise<BackupAnswer> {
  const child = fork(CHILD, { stdio: ["ignore", "ignore", "inherit", "ipc"] });
  const end = (): void => void child.kill("SIGKILL");
  signal.addEventListener("abort", end);
  try {
    let answer: BackupAnswer = { failure: "the process of the backup ended without an answer" };
    child.once("message", (said: BackupAnswer) => {
      answer = said;
    });
    child.send({ config: order.config, task: order.task satisfies BackupTask });
    await once(child, "exit");
    return answer;
  } finally {
    signal.removeEventListener("abort", end);
    const { clearWorkFolders } = await import("../operator/backup/units.ts"); // loaded with the first backup
    await clearWorkFolders(order.config.data);
  }
}
