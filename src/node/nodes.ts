/** The nodes of a platform, as one server knows them. A node is one machine with the server on it. */

export interface NodeInfo {
  readonly id: string;
  readonly name: string;
  /** Where other nodes reach this one, as host:port; null when it does not listen for them. */
  readonly address: string | null;
  readonly version: string;
  readonly driver: string;
  readonly capabilities: readonly string[];
  /** Whether workloads can run there; a machine that is still being opened counts as one that can. */
  readonly runs: boolean;
  readonly memoryMb: number;
  readonly cpus: number;
  readonly usedMb: number;
  /** A drained node gets no new workloads. */
  readonly drained: boolean;
  /** Heard of lately. */
  readonly live: boolean;
  readonly startedAt: number;
  readonly heartbeatAt: number;
}

/** A view in memory, refreshed by every heartbeat and by news of other servers. No call but `refresh` waits. */
export interface Nodes {
  /** The node of this server. */
  readonly self: NodeInfo;
  /** Every node can act on every workload, so records have no owner and leases decide. */
  readonly shared: boolean;
  list(): readonly NodeInfo[];
  find(id: string): NodeInfo | null;
  isLive(id: string): boolean;
  /** Not heard of for so long that its workloads are given up on; false while this server is not sure. */
  isLost(id: string): boolean;
  /** null: the node is unknown, or no other node can reach it. */
  addressOf(id: string): string | null;
  /** The name for people; the id where the node is unknown. */
  nameOf(id: string): string;
  /** Whether this server acts on a record with this owner. */
  owns(node: string | null): boolean;
  /** After this long without a heartbeat a node is lost. */
  readonly lostAfterMs: number;
  /** Reads the nodes again now, for an answer that has to be up to date. */
  refresh(): Promise<void>;
  onChange(listener: () => void): () => void;
}
