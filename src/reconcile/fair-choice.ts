/**
 * Chooses the tasks that start next. Pure: first the workspace with the fewest running tasks, in it the job with the
 * fewest, in that the oldest execution. When the chosen task does not fit into memory, nothing else starts: a big task
 * would otherwise never find room among small ones.
 */
export interface JobCandidate {
  executionId: string;
  workspace: string;
  jobUid: string;
  memoryMb: number;
  /** Tasks of this execution that may start now. */
  room: number;
  /** Tasks of its job that may start now. */
  jobRoom: number;
}

export interface RunningTask {
  workspace: string;
  jobUid: string;
  memoryMb: number;
}

export interface Capacity {
  slots: number;
  memoryMb: number;
}

/** Executions in the order in which each may start one task; an execution may appear several times. */
export function chooseStarts(
  candidates: readonly JobCandidate[],
  running: readonly RunningTask[],
  capacity: Capacity,
): string[] {
  const load = new Map<string, number>();
  const count = (key: string, by: number): void => void load.set(key, (load.get(key) ?? 0) + by);
  for (const { workspace, jobUid } of running) {
    count(workspace, 1);
    count(jobUid, 1);
  }
  const room = new Map(candidates.map(({ executionId, room: free }) => [executionId, free]));
  const jobRoom = new Map(candidates.map(({ jobUid, jobRoom: free }) => [jobUid, free]));
  let tasks = running.length;
  let memoryMb = running.reduce((sum, task) => sum + task.memoryMb, 0);

  const chosen: string[] = [];
  while (tasks < capacity.slots) {
    const next = leastLoaded(
      candidates.filter(
        ({ executionId, jobUid }) => (room.get(executionId) ?? 0) > 0 && (jobRoom.get(jobUid) ?? 0) > 0,
      ),
      load,
    );
    // A task bigger than all the memory for jobs runs alone on the machine.
    if (!next || (memoryMb + next.memoryMb > capacity.memoryMb && tasks > 0)) break;
    chosen.push(next.executionId);
    tasks += 1;
    memoryMb += next.memoryMb;
    count(next.workspace, 1);
    count(next.jobUid, 1);
    room.set(next.executionId, (room.get(next.executionId) ?? 0) - 1);
    jobRoom.set(next.jobUid, (jobRoom.get(next.jobUid) ?? 0) - 1);
  }
  return chosen;
}

/** Candidates are sorted oldest first, so the first of equals wins. */
function leastLoaded(candidates: readonly JobCandidate[], load: ReadonlyMap<string, number>): JobCandidate | null {
  let best: JobCandidate | null = null;
  let bestLoad: [number, number] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (const candidate of candidates) {
    const own: [number, number] = [load.get(candidate.workspace) ?? 0, load.get(candidate.jobUid) ?? 0];
    if (own[0] < bestLoad[0] || (own[0] === bestLoad[0] && own[1] < bestLoad[1])) [best, bestLoad] = [candidate, own];
  }
  return best;
}
