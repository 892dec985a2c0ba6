/**
 * Key rotation with several servers on one PostgreSQL. Before a rotation each server is asked whether it has the new
 * key. Before the rotation ends, the database itself refuses values of the old key, so a server that missed the
 * rotation cannot write a value that no key opens.
 */
import { setTimeout as pause } from "node:timers/promises";
import { sql } from "kysely";
import { PlatformError } from "../../contract/errors.ts";
import { randomWord } from "../../lib/ids.ts";
import type { Running } from "../../lib/lifecycle.ts";
import type { Database, Queries } from "../database/database.ts";
import { KEY_TOPIC, type KeyRecords, newestKey } from "./key-records.ts";
import type { Keyring } from "./keyring.ts";
import { LISTENER_NAME, SEALED_CONSTRAINT } from "./postgres-names.ts";
import { isCurrent } from "./reseal.ts";
import { SEALED_COLUMNS, type SealedColumn } from "./sealed-columns.ts";

/** Time for the other servers to answer. Long enough for a busy server that is starting. */
const ANSWERS_MS = 15_000;
const LOOK_MS = 100;
const ASKED = "asked/";
const ANSWERED = "answered/";
/**
 * Time to wait for a table lock. It is short, so that other statements do not queue behind this one while a backup
 * holds the table; the lock is tried again.
 */
const LOCK_WAIT = "500ms";
const LOCK_NOT_AVAILABLE = "55P03";
const RETRY_MS = 500;

export interface KeyFollower {
  database: Database;
  records: KeyRecords;
  keyring: Keyring;
  onError(error: unknown): void;
}

/** Follows rotations of other processes: answers whether this server has the key, and seals with the current key. */
export function followKeys({ database, records, keyring, onError }: KeyFollower): Running {
  const name = randomWord(12);
  let last = Promise.resolve();
  const look = async (): Promise<void> => {
    const state = await records.state();
    const newest = newestKey(state);
    if (newest !== null) keyring.sealWith(newest);
    if (state.fingerprint !== null && state.rotation === null) keyring.settle(state.fingerprint);
  };
  const answer = async (fingerprint: string): Promise<void> => {
    if (keyring.has(fingerprint)) await announce(database, `${ANSWERED}${fingerprint}/${name}`);
  };
  const stop = database.onChange(({ topic, key }) => {
    if (topic !== KEY_TOPIC && topic !== "resync") return;
    if (key.startsWith(ANSWERED)) return;
    const work = key.startsWith(ASKED) ? () => answer(key.slice(ASKED.length)) : look;
    last = last.then(work).catch(onError);
  });
  return {
    async stop() {
      stop();
      await last;
    },
  };
}

/** Refuses when a connected server does not have the key. */
export async function requireKeyEverywhere(
  database: Database,
  fingerprint: string,
  answersMs = ANSWERS_MS,
): Promise<void> {
  if (database.dialect === "sqlite") return; // one process owns the file
  const answers = new Set<string>();
  const stop = database.onChange(({ topic, key }) => {
    if (topic === KEY_TOPIC && key.startsWith(`${ANSWERED}${fingerprint}/`)) answers.add(key);
  });
  try {
    await announce(database, ASKED + fingerprint);
    const until = performance.now() + answersMs;
    for (;;) {
      const servers = await connectedServers(database);
      if (answers.size >= servers) return;
      if (performance.now() > until) throw notEverywhere(fingerprint, servers - answers.size);
      await pause(LOOK_MS);
    }
  } finally {
    stop();
  }
}

const announce = (database: Database, key: string): Promise<void> =>
  database.write(async (tx) => tx.announce({ topic: KEY_TOPIC, key }));

async function connectedServers({ read }: Database): Promise<number> {
  const { rows } = await sql<{ n: number }>`SELECT count(*)::int AS n FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = ${LISTENER_NAME}`.execute(read);
  return rows[0]?.n ?? 0;
}

const notEverywhere = (fingerprint: string, missing: number): PlatformError =>
  new PlatformError(
    "conflict",
    `${missing} other server${missing === 1 ? " of this database does" : "s of this database do"} not have the new key ${fingerprint}. Copy secret.key.next into the data folder of each, or set BERTH_SECRET_KEY_NEXT for each and restart it, and run \`berth rotate-key\` again. Nothing was sealed with the new key yet.`,
  );

/** Makes the database refuse new values sealed with another key. Existing rows stay. */
export const refuseOtherKeys = (database: Database, fingerprint: string): Promise<void> =>
  eachTable(database, async (queries, column) => {
    const name = constraintOf(column);
    await sql`ALTER TABLE ${sql.table(column.table)} DROP CONSTRAINT IF EXISTS ${sql.ref(name)}`.execute(queries);
    await sql`ALTER TABLE ${sql.table(column.table)} ADD CONSTRAINT ${sql.ref(name)} CHECK (${isCurrent(column, fingerprint)}) NOT VALID`.execute(
      queries,
    );
  });

export const allowOtherKeys = (database: Database): Promise<void> =>
  eachTable(database, async (queries, column) => {
    await sql`ALTER TABLE ${sql.table(column.table)} DROP CONSTRAINT IF EXISTS ${sql.ref(constraintOf(column))}`.execute(
      queries,
    );
  });

const constraintOf = ({ keyPrefix = "" }: SealedColumn): string => SEALED_CONSTRAINT + keyPrefix.replace(/\W/g, "_");

async function eachTable(
  database: Database,
  change: (queries: Queries, column: SealedColumn) => Promise<void>,
): Promise<void> {
  if (database.dialect === "sqlite") return;
  for (const column of SEALED_COLUMNS) {
    while (!(await tryLocked(database, (queries) => change(queries, column)))) await pause(RETRY_MS);
  }
}

async function tryLocked(database: Database, change: (queries: Queries) => Promise<void>): Promise<boolean> {
  try {
    await database.write(async ({ queries }) => {
      await sql`SET LOCAL lock_timeout = ${sql.lit(LOCK_WAIT)}`.execute(queries);
      await change(queries);
    });
    return true;
  } catch (error) {
    if ((error as { code?: string }).code === LOCK_NOT_AVAILABLE) return false;
    throw error;
  }
}
