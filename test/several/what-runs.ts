/** What really runs on a server's machine, read from the kernel and from the driver's own files, not from the server. */
import { createHash } from "node:crypto";
import { existsSync, globSync, readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { TASK_GROUPS } from "../../src/node/drivers/local/tasks/task-lives.ts";
import { isAlive, loadRecords } from "../../src/node/drivers/local/workload/record.ts";

export interface Running {
  uid: string;
  name: string;
  pid: number;
  startTime: string;
}

export function runningOn(dataDir: string): Running[] {
  return loadRecords(join(dataDir, "runtime/workloads")).flatMap(({ record }) => {
    if (!record?.uid || !isAlive(record)) return [];
    const { uid, name, pid, startTime } = record;
    return [{ uid, name, pid, startTime }];
  });
}

/** Groups with processes in them whose workload has no folder. */
export function strayGroupsOn(dataDir: string): string[] {
  const runtime = join(dataDir, "runtime");
  const folder = join(runtime, "workloads");
  const known = new Set(existsSync(folder) ? readdirSync(folder) : []);
  const parents = `*-${createHash("sha256").update(runtime).digest("hex").slice(0, 8)}`;
  return globSync(`/sys/fs/cgroup/**/${parents}/*/cgroup.procs`)
    .filter((file) => processesIn(file) !== "")
    .map((file) => basename(join(file, "..")))
    .filter((group) => !known.has(group) && !group.startsWith(TASK_GROUPS));
}

/** A group may be removed between being listed and being read. */
function processesIn(file: string): string {
  try {
    return readFileSync(file, "utf8").trim();
  } catch {
    return "";
  }
}
