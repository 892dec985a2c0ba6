/**
 * Which tasks start next. Pure: the workspace that runs least comes first, within it the job that runs least, within
 * that the oldest execution. Whoever's turn it is and who does not fit in memory is waited for: a big task would
 * otherwise never find room among small ones.
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

/** Executions in the order in which each may start one task; one may come several times. */
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
    // A task bigger than all the memory there is for jobs may have the machine alone.
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

/** Candidates come oldest first, so of equals the first is the one. */
function leastLoaded(candidates: readonly JobCandidate[], load: ReadonlyMap<string, number>): JobCandidate | null {
  let best: JobCandidate | null = null;
  let bestLoad: [number, number] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (const candidate of candidates) {
    const own: [number, number] = [load.get(candidate.workspace) ?? 0, load.get(candidate.jobUid) ?? 0];
    if (own[0] < bestLoad[0] || (own[0] === bestLoad[0] && own[1] < bestLoad[1])) [best, bestLoad] = [candidate, own];
  }
  return best;
}
