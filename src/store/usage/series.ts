/**
 * Usage series: each is written once and then referred to by a small number. Each has a partner without resource names,
 * which it is summed into.
 */
import { sql } from "kysely";
import type { Database, Queries } from "../database/database.ts";
import { jsonRows } from "../database/json-rows.ts";
import type { UsageSeries } from "./port.ts";

export interface SeriesId {
  account: number;
  id: number;
  unnamedId: number;
}

/** Cached series numbers, about 200 bytes each. With more active series the cache is cleared and filled again. */
const REMEMBERED_MAX = 50_000;

const TEXTS = {
  workspace: "text",
  resource_type: "text",
  resource_name: "text",
  resource_uuid: "text",
  dimension: "text",
  subject: "text",
} as const;

/** Cached keys: many events share a series, and its key is needed several times per event. */
const keys = new WeakMap<UsageSeries, string>();

export function seriesKey(series: UsageSeries): string {
  const known = keys.get(series);
  if (known !== undefined) return known;
  const { accountId, workspace, resourceType, resourceName, resourceUuid, dimension, subject = "" } = series;
  const key = JSON.stringify([accountId, workspace, resourceType, resourceName, resourceUuid, dimension, subject]);
  keys.set(series, key);
  return key;
}

export function createUsageSeries(database: Database) {
  const { dialect } = database;
  const remembered = new Map<string, SeriesId>();

  /** Returns the numbers of all of `series`, by key; new series are inserted in the same transaction. */
  async function resolve(queries: Queries, series: Iterable<UsageSeries>): Promise<Map<string, SeriesId>> {
    const found = new Map<string, SeriesId>();
    const missing = new Map<string, UsageSeries>();
    for (const one of series) {
      const key = seriesKey(one);
      const known = remembered.get(key);
      if (known) found.set(key, known);
      else missing.set(key, one);
    }
    if (missing.size === 0) return found;
    const accounts = await accountNumbers(queries, new Set([...missing.values()].map(({ accountId }) => accountId)));
    const rows = [...missing.values()].map((one) => ({ series: one, account: accounts.get(one.accountId) ?? 0 }));
    await insertUnnamed(queries, rows);
    await insertNamed(queries, rows);
    for (const { series: one, id } of await select(queries, rows)) found.set(seriesKey(one), id);
    return found;
  }

  async function accountNumbers(queries: Queries, accountIds: ReadonlySet<string>): Promise<Map<string, number>> {
    const given = jsonRows(
      dialect,
      { account_id: "text" },
      [...accountIds].sort().map((id) => [id]),
    );
    await sql`INSERT INTO usage_accounts (account_id) SELECT account_id FROM ${given} AS given WHERE true
      ON CONFLICT DO NOTHING`.execute(queries);
    return selectAccounts(queries, accountIds);
  }

  async function selectAccounts(queries: Queries, accountIds: ReadonlySet<string>): Promise<Map<string, number>> {
    const given = jsonRows(
      dialect,
      { account_id: "text" },
      [...accountIds].map((id) => [id]),
    );
    const { rows } = await sql<{ id: number; account_id: string }>`SELECT a.id, a.account_id
      FROM ${given} AS given JOIN usage_accounts a ON a.account_id = given.account_id`.execute(queries);
    return new Map(rows.map((row) => [row.account_id, row.id]));
  }

  interface Located {
    series: UsageSeries;
    account: number;
  }

  const givenRows = (rows: readonly Located[]) =>
    jsonRows(
      dialect,
      { account: "bigint", ...TEXTS },
      rows.map(({ account, series }) => [
        account,
        series.workspace,
        series.resourceType,
        series.resourceName,
        series.resourceUuid,
        series.dimension,
        series.subject ?? "",
      ]),
    );

  const insertUnnamed = (queries: Queries, rows: readonly Located[]) =>
    sql`INSERT INTO usage_series (account, named, workspace, resource_type, resource_name, resource_uuid, dimension, subject)
      SELECT DISTINCT account, 0, workspace, resource_type, '', '', dimension, '' FROM ${givenRows(rows)} AS given WHERE true
      ORDER BY 1, 3, 4, 7
      ON CONFLICT DO NOTHING`.execute(queries);

  const insertNamed = (queries: Queries, rows: readonly Located[]) =>
    sql`INSERT INTO usage_series (account, named, workspace, resource_type, resource_name, resource_uuid, dimension, subject, unnamed_id)
      SELECT given.account, 1, given.workspace, given.resource_type, given.resource_name, given.resource_uuid, given.dimension, given.subject, s.id
      FROM ${givenRows(rows)} AS given JOIN usage_series s ON s.account = given.account AND s.named = 0
        AND s.workspace = given.workspace AND s.resource_type = given.resource_type AND s.resource_name = ''
        AND s.resource_uuid = '' AND s.dimension = given.dimension AND s.subject = ''
      WHERE true ORDER BY 1, 3, 4, 5, 6, 7, 8
      ON CONFLICT DO NOTHING`.execute(queries);

  async function select(queries: Queries, rows: readonly Located[]): Promise<{ series: UsageSeries; id: SeriesId }[]> {
    const numbered = jsonRows(
      dialect,
      { n: "bigint", account: "bigint", ...TEXTS },
      rows.map(({ account, series }, n) => [
        n,
        account,
        series.workspace,
        series.resourceType,
        series.resourceName,
        series.resourceUuid,
        series.dimension,
        series.subject ?? "",
      ]),
    );
    const { rows: found } = await sql<{ n: number; id: number; unnamed_id: number }>`SELECT given.n, s.id, s.unnamed_id
      FROM ${numbered} AS given JOIN usage_series s ON s.account = given.account AND s.named = 1
        AND s.workspace = given.workspace AND s.resource_type = given.resource_type AND s.resource_name = given.resource_name
        AND s.resource_uuid = given.resource_uuid AND s.dimension = given.dimension AND s.subject = given.subject`.execute(
      queries,
    );
    return found.flatMap(({ n, id, unnamed_id }) => {
      const row = rows[n];
      return row ? [{ series: row.series, id: { account: row.account, id, unnamedId: unnamed_id } }] : [];
    });
  }

  return {
    resolve,
    /** Caches the numbers. Call it after the transaction that resolved them is durable. */
    remember(found: ReadonlyMap<string, SeriesId>): void {
      if (remembered.size + found.size > REMEMBERED_MAX) remembered.clear();
      for (const [key, id] of found) remembered.set(key, id);
    },
    /** Returns the numbers of the series that exist, without writing. */
    find: async (queries: Queries, series: readonly UsageSeries[]): Promise<Map<string, SeriesId>> => {
      const numbers = await selectAccounts(queries, new Set(series.map(({ accountId }) => accountId)));
      const located = series.map((one) => ({ series: one, account: numbers.get(one.accountId) ?? 0 }));
      return new Map((await select(queries, located)).map(({ series: one, id }) => [seriesKey(one), id]));
    },
  };
}
