/** Something in every sealed column of a database, and how it reads. */
import assert from "node:assert/strict";
import { sql } from "kysely";
import { uuidv7 } from "../../src/lib/ids.ts";
import { createSealedBox, deriveKey, fingerprintOf } from "../../src/lib/sealed-box.ts";
import { DAY_MS } from "../../src/lib/time/clock.ts";
import {
  CONNECTION_TOKENS,
  nameOf,
  SEALED_COLUMNS,
  type SealedRow,
  WORKSPACE_AUTHORITIES,
} from "../../src/store/sealing/sealed-columns.ts";
import type { Store } from "../../src/store/store.ts";
import { addWorkspace, draftOf } from "../store.ts";

/** More than two batches. */
const MESSAGES = 120;
const AGENT = uuidv7(Date.now());

export async function fill(store: Store): Promise<void> {
  await addWorkspace(store);
  await store.resources.create(
    draftOf("agent", "a", { uid: AGENT, secrets: { "/spec/x": "resource" }, revision: true }),
  );
  await store.threads.append(
    AGENT,
    "t",
    Array.from({ length: MESSAGES }, (_, n) => ({ role: "user", content: `message ${n}` })),
    DAY_MS,
  );
  await store.executions.create({
    ...{ workspace: "main", jobUid: "j", job: "job", tasks: [{}], parallelism: 1, maxRetries: 0, timeoutS: 60 },
    ...{ memoryMb: 128, memoryOverride: null, env: { A: "execution" }, revision: "1", slot: null },
    ...{ cause: "api", createdBy: "test" },
  });
  await store.deliveries.add({
    ...{ workspace: "main", kind: "agent", uid: AGENT, triggerId: "t", cause: "async", phase: "request" },
    ...{ payload: { body: "delivery" }, withinMs: DAY_MS },
  });
  await store.oauth.put("Session", "session-id", { jti: "session-id", accountId: "ada", uid: "u" }, 86_400);
  await store.idempotency.claim("scope", "key", "hash", "me");
  await store.idempotency.answer("scope", "key", { status: 200, body: "answer" });
  await store.signingKeys.current("tokens", () => ({ id: "k1", publicKey: "{}", privateKey: "private" }));
  await store.certificates.put(["shop.example"], {
    ...{ domainUid: "", source: "upload", chain: "chain", notBefore: 0, notAfter: 0, renewAt: 0 },
    key: "key of a certificate",
  });
  await store.certificates.account("https://authority.example", async () => ({ url: "", key: "key of an account" }));
  for (const key of [`${CONNECTION_TOKENS}${AGENT}`, `${WORKSPACE_AUTHORITIES}main`])
    await store.records.update(key, Date.now() + DAY_MS, () => ({
      value: store.keyring.seal(`content of ${key}`, key),
      result: undefined,
    }));
}

/** Every sealed value, opened, by the column that it is in. */
export async function readAll({ database, keyring }: Store): Promise<Record<string, string[]>> {
  const all: Record<string, string[]> = {};
  for (const column of SEALED_COLUMNS)
    all[nameOf(column)] = (await sealedValues(database.read, column)).map((row) =>
      keyring.open(String(row.sealed_value), column.context(row)),
    );
  return all;
}

/** Sealed values as they are in the database. */
async function sealedValues(
  queries: Store["database"]["read"],
  { table, column, key, keyPrefix }: (typeof SEALED_COLUMNS)[number],
): Promise<SealedRow[]> {
  const names = sql.join(key.map((name) => sql.ref(name)));
  const own = keyPrefix === undefined ? sql`` : sql`AND key LIKE ${`${keyPrefix}%`}`;
  const { rows } = await sql<SealedRow>`SELECT ${names}, ${sql.ref(column)} AS sealed_value FROM ${sql.table(table)}
    WHERE ${sql.ref(column)} IS NOT NULL ${own} ORDER BY ${names}`.execute(queries);
  return rows;
}

/** The key opens nothing that is sealed, and no cell of any table was sealed with it. */
export async function assertClosedTo(key: Buffer, { database }: Store): Promise<void> {
  const box = createSealedBox(deriveKey(key, "resources"));
  for (const column of SEALED_COLUMNS)
    for (const row of await sealedValues(database.read, column)) {
      const sealed = String(row.sealed_value);
      assert.throws(() => box.open(sealed.slice(sealed.indexOf(".") + 1), column.context(row)), column.table);
    }
  const prefix = `${fingerprintOf(key)}.`;
  for (const [table, columns] of await textColumns(database))
    for (const name of columns) {
      const { rows } =
        await sql`SELECT 1 FROM ${sql.table(table)} WHERE ${sql.ref(name)} LIKE ${`%${prefix}%`}`.execute(
          database.read,
        );
      assert.equal(rows.length, 0, `${table}.${name} holds a value of the old key: add it to SEALED_COLUMNS`);
    }
}

async function textColumns({ dialect, read }: Store["database"]): Promise<Map<string, string[]>> {
  type Found = { t: string; c: string };
  const { rows } =
    dialect === "sqlite"
      ? await sql<Found>`SELECT m.name AS t, p.name AS c FROM sqlite_master m, pragma_table_info(m.name) p
          WHERE m.type = 'table' AND m.name NOT LIKE 'resource_grams%' AND p.type = 'TEXT'`.execute(read)
      : await sql<Found>`SELECT table_name AS t, column_name AS c FROM information_schema.columns
          WHERE table_schema = current_schema() AND data_type = 'text'`.execute(read);
  return rows.reduce((tables, { t, c }) => tables.set(t, [...(tables.get(t) ?? []), c]), new Map<string, string[]>());
}
