/** The single events of the ledger, page by page, in either order of time. */
import { sql } from "kysely";
import type { Database } from "../database/database.ts";
import { int } from "./parts.ts";
import type { UsageEvent, UsageEventPlace, UsageKey } from "./port.ts";
import { isWanted } from "./question.ts";

export interface EventsWindow {
  startMs: number;
  endMs: number;
}

export interface EventsPage {
  limit: number;
  /** The last event of the page before. */
  after: UsageEventPlace | null;
  filter?: UsageKey;
  newestFirst?: boolean;
}

export interface PlacedEvent {
  event: UsageEvent;
  place: UsageEventPlace;
}

export function createUsageEvents(database: Database, accountNumber: (accountId: string) => Promise<number | null>) {
  const { dialect, read } = database;

  async function rowsOf(
    account: number,
    { startMs, endMs }: EventsWindow,
    { filter = {}, newestFirst = false, after, limit }: EventsPage,
    keys: readonly string[] | null,
  ): Promise<EventRow[]> {
    const beyond = sql.raw(newestFirst ? "<" : ">");
    const order = sql.raw(newestFirst ? "DESC" : "ASC");
    const isNext = after
      ? sql`(e.start_ms, e.series_id, e.event_key) ${beyond} (${int(after[0])}, ${int(after[1])}, ${after[2]})`
      : sql`true`;
    const from = newestFirst ? startMs : (after?.[0] ?? startMs);
    const until = newestFirst && after ? after[0] + 1 : endMs;
    const hasKey = keys === null ? sql`true` : sql`e.event_key IN (${sql.join(keys)})`;
    return database.report<EventRow>(
      sql`SELECT e.start_ms, e.series_id, e.event_key, e.end_ms, e.quantity,
          s.workspace, s.resource_type, s.resource_name, s.resource_uuid, s.dimension, s.subject
        FROM usage_events e JOIN usage_series s ON s.id = e.series_id
        WHERE ${isWanted({ filter, workspaces: "all" }, { account, dialect })}
          AND e.start_ms >= ${int(from)} AND e.start_ms < ${int(until)} AND ${isNext} AND ${hasKey}
        ORDER BY e.start_ms ${order}, e.series_id ${order}, e.event_key ${order} LIMIT ${int(limit)}`.compile(read),
    );
  }

  return {
    /** The next events that start in the window, in order of time. */
    async events(accountId: string, window: EventsWindow, page: EventsPage): Promise<PlacedEvent[]> {
      const account = await accountNumber(accountId);
      if (account === null) return [];
      return (await rowsOf(account, window, page, null)).map((row) => placed(accountId, row));
    },

    /** All events in the window with one of these keys; `limit` bounds their number. */
    async eventsWithKeys(
      accountId: string,
      window: EventsWindow,
      { filter, keys, limit }: { filter: UsageKey; keys: readonly string[]; limit: number },
    ): Promise<UsageEvent[]> {
      const account = await accountNumber(accountId);
      if (account === null || keys.length === 0) return [];
      return (await rowsOf(account, window, { filter, limit, after: null }, keys)).map(
        (row) => placed(accountId, row).event,
      );
    },
  };
}

interface EventRow {
  start_ms: number;
  series_id: number;
  event_key: string;
  end_ms: number;
  quantity: number;
  workspace: string;
  resource_type: string;
  resource_name: string;
  resource_uuid: string;
  dimension: string;
  subject: string;
}

const placed = (accountId: string, row: EventRow): PlacedEvent => ({
  event: {
    series: {
      accountId,
      workspace: row.workspace,
      resourceType: row.resource_type,
      resourceName: row.resource_name,
      resourceUuid: row.resource_uuid,
      dimension: row.dimension,
      ...(row.subject === "" ? {} : { subject: row.subject }),
    },
    startMs: row.start_ms,
    endMs: row.end_ms,
    quantity: row.quantity,
    key: row.event_key,
  },
  place: [row.start_ms, row.series_id, row.event_key],
});
