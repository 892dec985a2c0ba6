/**
 * Running copies of a workload, as the reconcile loop writes them into a resource's state and the gateway reads them.
 * A sandbox has one; an agent has as many per revision as its load asks for.
 */
export interface Instance<Endpoint = unknown> {
  uid: string;
  /** Null for kinds without revisions. */
  revision: string | null;
  endpoint: Endpoint;
  /**
   * A frozen one keeps its memory and answers once it is thawed; a draining one answers only whoever has a session
   * there.
   */
  phase: "running" | "frozen" | "draining";
}

/** Where a code workload listens inside its instance; it is told by the PORT variable. */
export const WORKLOAD_PORT = 8080;

export interface InstancesState<Endpoint = unknown> {
  instances?: Instance<Endpoint>[];
  /** When the gateway last asked for an instance that was not there, in milliseconds. */
  wantedAt?: number;
  /** The revision it asked for. */
  wantedRevision?: string | null;
  /** Why the last attempt to start an instance of a revision came to nothing. */
  startFailure?: { revision: string; at: number; message: string };
}
