/**
 * Adopts workloads of an earlier server. Running and ended workloads are kept; unfinished first starts and prepared
 * workloads that were never claimed are removed with all their resources.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { Cgroup, CgroupHost } from "../machine/cgroup.ts";
import { TASK_GROUPS } from "../tasks/task-lives.ts";
import { loadRecords, NO_SLOT, RECORD_FORMAT, type WorkloadRecord } from "./record.ts";
import { Workload, type WorkloadContext } from "./workload.ts";

export async function adopt(context: WorkloadContext, dir: string, cgroups: CgroupHost): Promise<Workload[]> {
  const kept: Workload[] = [];
  const known = new Set<string>();
  for (const { dir: folder, id, record } of loadRecords(dir)) {
    known.add(id);
    const workload = new Workload(context, folder, record ?? remains(id, cgroups));
    if (record?.phase === "ready" && record.uid !== null) {
      await workload.endIfKilled();
      if (workload.alive && !record.hibernated) {
        await workload.open();
        await workload.endCopy();
      }
      kept.push(workload);
      continue;
    }
    await workload.destroy(0);
  }
  // A group without a folder: the server died between creating the two.
  for (const id of strayGroups(cgroups, known)) {
    await new Workload(context, join(dir, id), remains(id, cgroups)).destroy(0);
  }
  return kept;
}

/** A record with just enough fields for the cleanup. */
function remains(id: string, { version, parents }: CgroupHost): WorkloadRecord {
  const paths = Object.entries(parents).map(([controller, parent]) => [controller, join(parent, id)]);
  const cgroup: Cgroup = { version, paths: Object.fromEntries(paths) };
  return {
    format: RECORD_FORMAT,
    id,
    uid: null,
    phase: "starting",
    name: "",
    image: "",
    imageDigest: "",
    parts: [],
    network: "closed",
    limits: { memoryMb: 0, cpus: 0 },
    mounts: [],
    command: false,
    grade: "none",
    slot: NO_SLOT,
    idBase: null,
    cgroup,
    pid: 0,
    startTime: "",
    watcher: { pid: 0, startTime: "" },
    pooled: false,
    createdAt: "",
  };
}

function strayGroups({ parents }: CgroupHost, known: Set<string>): Set<string> {
  const stray = new Set<string>();
  for (const parent of Object.values(parents)) {
    for (const id of groupsBelow(parent)) if (!known.has(id) && !id.startsWith(TASK_GROUPS)) stray.add(id);
  }
  return stray;
}

/** Empty when the parent is gone: a stopping server removes it once no group is left in it. */
function groupsBelow(parent: string): string[] {
  try {
    return readdirSync(parent, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [entry.name] : []));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}
