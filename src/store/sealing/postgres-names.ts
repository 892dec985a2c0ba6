/** Names that identify servers and constraints inside PostgreSQL. */

/** Application name of the one connection per server that listens for changes. */
export const LISTENER_NAME = "berth-listen";

/** Constraint on a sealed column that only accepts values of the newest key; see sealing/other-servers.ts. */
export const SEALED_CONSTRAINT = "sealed_with_the_newest_key";
