/**
 * Other servers on one PostgreSQL. Before a rotation each is asked whether it has the new key. Before the end of one
 * the database itself refuses values of the old key: a server that missed the rotation cannot leave behind a value that
 * nobody opens.
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

/** Long enough for a server that is busy starting; an operator waits for it once. */
const ANSWERS_MS = 15_000;
const LOOK_MS = 100;
const ASKED = "asked/";
const ANSWERED = "answered/";
/** A table is locked for a moment. Whoever holds it (a backup) goes first, and others do not queue up behind us. */
const LOCK_WAIT = "500ms";
const LOCK_NOT_AVAILABLE = "55P03";
const RETRY_MS = 500;

export interface KeyFollower {
  database: Database;
  records: KeyRecords;
  keyring: Keyring;
  onError(error: unknown): void;
}

/** Takes part in the rotations of other processes: answers who has the key, and seals with the key that is in force. */
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

/** Refuses when a server is connected that does not have the key. */
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

/** From here on the database takes no value that another key has sealed. Rows that are there already stay. */
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
