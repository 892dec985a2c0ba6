/** Settings of the processes that share the server's port. */
import { availableParallelism } from "node:os";
import { z } from "zod";

export const edgeSettings = {
  edge_processes: {
    env: "BERTH_EDGE_PROCESSES",
    schema: z.coerce.number().int().min(0).max(64).optional(),
    about:
      "Processes that accept connections and forward requests to running workloads; 0 = the server does that itself. Absent = half of the cores, at most 4; 0 on one or two cores.",
  },
};

/** Cores from which on the server shares its port: on fewer the owner and the workloads need all of them. */
const CORES_MIN = 3;
/** Each process costs memory, and four of them forward more than the owner can start and answer questions for. */
const DEFAULT_MAX = 4;

export const defaultEdgeProcesses = (cores: number): number =>
  cores < CORES_MIN ? 0 : Math.min(Math.floor(cores / 2), DEFAULT_MAX);

export const edgeProcessesOf = ({ edge_processes }: { edge_processes?: number | undefined }): number =>
  edge_processes ?? defaultEdgeProcesses(availableParallelism());
