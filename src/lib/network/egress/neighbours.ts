/** Other workloads of a workload's VPC, which it reaches by name. */
import type { EgressRefusal } from "./egress-refusal.ts";
import type { Host } from "./host.ts";

/** A running workload that a name leads to. */
export interface Neighbour<Endpoint> {
  uid: string;
  /** Uid of the resource that has the name; a resource may have several workloads. */
  owner: string;
  endpoint: Endpoint;
  /** Counts as use of the workload until the returned function is called, so that the workload stays awake. */
  use(): () => void;
}

export interface Neighbours<Endpoint> {
  /**
   * The workload that has this name in the VPC of the workload `uid`; one that sleeps is woken. Null: the host is not
   * below the VPC's zone, so the name is like any other.
   */
  find(uid: string, host: Host): Promise<Neighbour<Endpoint> | EgressRefusal | null>;
  /** The workload got packets from another one: it is in use, and is woken when it sleeps. */
  touch(uid: string): Promise<void>;
}
