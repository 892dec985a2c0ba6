/**
 * Uses of a limit that is counted in memory, told among the servers of one database: each server counts those of all.
 * Otherwise a client would have the whole limit at every server.
 */
export interface UseChannel {
  /** Returns at once. A use that cannot be told counts at this server alone. */
  tell(address: string): void;
  /** `count` gets the uses at other servers. */
  hear(count: (address: string) => void): void;
}

/** For one server on its own. */
export const ALONE: UseChannel = { tell: () => undefined, hear: () => undefined };
