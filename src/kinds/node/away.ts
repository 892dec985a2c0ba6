/** In the state of a workload that waits for its node. */
export interface Away {
  /** The status to go on with. */
  status: string | null;
}
