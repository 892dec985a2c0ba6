/**
 * Running replicas of a workload, as the reconcile loop writes them into a resource's state and the gateway reads them.
 * A sandbox has one; an agent has as many per revision as its load needs.
 */
export interface Instance<Endpoint = unknown> {
  uid: string;
  /** Null for kinds without revisions. */
  revision: string | null;
  endpoint: Endpoint;
  /**
   * A frozen instance keeps its memory and answers once it is thawed; a draining instance answers only clients that
   * have a session there.
   */
  phase: "running" | "frozen" | "draining";
}

/** The port on which a code workload listens inside its instance, passed as the PORT variable. */
export const WORKLOAD_PORT = 8080;

export type InstancesState<Endpoint = unknown> = {
  instances?: Instance<Endpoint>[];
  /** When the gateway last requested a missing instance, in milliseconds. */
  wantedAt?: number;
  /** The revision that the gateway requested. */
  wantedRevision?: string | null;
  /** Why the last start of an instance of this revision failed. */
  startFailure?: { revision: string; at: number; message: string };
};
