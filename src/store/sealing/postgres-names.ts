/** Names by which servers and rules are recognised inside PostgreSQL. */

/** The one connection of each server that listens for changes. */
export const LISTENER_NAME = "berth-listen";

/** The rule on a sealed column that only values of the newest key are written; see sealing/other-servers.ts. */
export const SEALED_CONSTRAINT = "sealed_with_the_newest_key";
