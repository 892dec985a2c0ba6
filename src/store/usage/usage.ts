/** The usage ledger on both databases. Its migration describes the tables, port.ts the interface. */
import { sql } from "kysely";
import type { Database } from "../database/database.ts";
import { createUsageEvents } from "./events.ts";
import { partsOf } from "./parts.ts";
import type {
  MeterState,
  SeriesState,
  UsageAnswer,
  UsageKey,
  UsageLedger,
  UsageQuestion,
  UsageSeries,
  UsageSpan,
} from "./port.ts";
import { isVisible, type QuestionRow, questionStatement } from "./question.ts";
import { createUsageRecorder } from "./record.ts";
import { createUsageSeries, seriesKey } from "./series.ts";
import { createUsageUpkeep } from "./upkeep.ts";

interface SpanRow {
  account_id: string;
  workspace: string;
  resource_type: string;
  resource_name: string;
  resource_uuid: string;
  dimension: string;
  subject: string;
  series_id: number;
  node: string;
  start_ms: number;
  rate: number;
  span_key: string;
  price_numerator: number;
  price_denominator: number;
  covered_until: number;
}

export type Usage = ReturnType<typeof createUsage>;

export function createUsage({ database }: { database: Database }) {
  const { dialect, read } = database;
  const allSeries = createUsageSeries(database);

  const accountNumber = async (accountId: string): Promise<number | null> =>
    (await read.selectFrom("usage_accounts").select("id").where("account_id", "=", accountId).executeTakeFirst())?.id ??
    null;
  const eventsSinceHour = async (): Promise<number> =>
    (await read.selectFrom("usage_retention").select("events_since").executeTakeFirst())?.events_since ?? 0;

  const ledger: UsageLedger = {
    record: createUsageRecorder(database, allSeries),

    async meterState(node): Promise<MeterState | null> {
      const meter = await read.selectFrom("usage_meters").selectAll().where("node", "=", node).executeTakeFirst();
      if (!meter) return null;
      const { rows } = await sql<SpanRow>`${SPANS} WHERE o.node = ${node}`.execute(read);
      return { coveredUntilMs: meter.covered_until, era: meter.era, spans: rows.map(spanFromRow) };
    },

    async seriesState(node, series): Promise<SeriesState[]> {
      const ids = series.length > 0 ? await allSeries.find(read, series) : new Map();
      if (ids.size === 0) return series.map(() => ({ meteredUntilMs: null, elsewhere: [] }));
      const numbers = [...ids.values()].map(({ id }) => id);
      const metered = await read
        .selectFrom("usage_metered")
        .select(["series_id", "until_ms"])
        .where("node", "=", node)
        .where("series_id", "in", numbers)
        .execute();
      const { rows: spans } = await sql<SpanRow>`${SPANS}
        WHERE o.node <> ${node} AND o.series_id IN (${sql.join(numbers)})`.execute(read);
      return series.map((one) => {
        const id = ids.get(seriesKey(one))?.id;
        return {
          meteredUntilMs: metered.find((row) => row.series_id === id)?.until_ms ?? null,
          elsewhere: spans
            .filter((row) => row.series_id === id)
            .map((row) => ({ node: row.node, span: spanFromRow(row), coveredUntilMs: row.covered_until })),
        };
      });
    },

    async ask(question): Promise<UsageAnswer> {
      const account = await accountNumber(question.accountId);
      if (account === null) return { groups: [], totals: [], cells: [] };
      const place = { dialect, account, eventsSinceHour: await eventsSinceHour() };
      const rows = await database.report<QuestionRow>(questionStatement(question, place).compile(read));
      return answerFromRows(rows, question);
    },

    async vouchedMs(sinceMs): Promise<number | null> {
      const { min } = read.fn;
      const living = read.selectFrom("usage_meters").where("covered_until", ">", sinceMs);
      return (await living.select(min("covered_until").as("until")).executeTakeFirst())?.until ?? null;
    },

    async resourceTypes(question, parts): Promise<string[]> {
      const account = await accountNumber(question.accountId);
      if (account === null) return [];
      const context = {
        ...question,
        dialect,
        account,
        eventsSinceHour: await eventsSinceHour(),
        named: false,
        selective: false,
        isNamed: sql`s.named = 1`,
        isWanted: isVisible(question, { account, dialect }),
      };
      const rows = await database.report<{ resource_type: string }>(
        sql`SELECT DISTINCT s.resource_type FROM (${partsOf(parts, context, false)}) AS parts
          CROSS JOIN usage_series s WHERE s.id = parts.series AND ${context.isWanted}`.compile(read),
      );
      return rows.map((row) => row.resource_type);
    },
  };
  return { ...ledger, ...createUsageEvents(database, accountNumber), ...createUsageUpkeep(database, accountNumber) };
}

const SPANS = sql`SELECT a.account_id, s.workspace, s.resource_type, s.resource_name, s.resource_uuid, s.dimension, s.subject,
    o.series_id, o.node, o.start_ms, o.rate, o.span_key, o.price_numerator, o.price_denominator, v.covered_until
  FROM usage_spans o JOIN usage_series s ON s.id = o.series_id JOIN usage_accounts a ON a.id = s.account
  JOIN usage_meters v ON v.node = o.node`;

const spanFromRow = (row: SpanRow): UsageSpan => ({
  series: seriesFromRow(row),
  startMs: row.start_ms,
  ratePerMs: row.rate,
  key: row.span_key,
  price: { numerator: BigInt(row.price_numerator), denominator: BigInt(row.price_denominator) },
});

const seriesFromRow = (row: Omit<SpanRow, "series_id">): UsageSeries => ({
  accountId: row.account_id,
  workspace: row.workspace,
  resourceType: row.resource_type,
  resourceName: row.resource_name,
  resourceUuid: row.resource_uuid,
  dimension: row.dimension,
  ...(row.subject === "" ? {} : { subject: row.subject }),
});

function answerFromRows(rows: readonly QuestionRow[], { columns }: UsageQuestion): UsageAnswer {
  const answer: UsageAnswer = { groups: [], totals: [], cells: [] };
  for (const row of rows) {
    const group = row.place - 1;
    if (row.what === "c") {
      for (const bucket of row.buckets.split(",")) {
        const [hour, cost = "", quantity = ""] = bucket.split(" ");
        answer.cells.push({ group, hour: Number(hour), cost: BigInt(cost), quantity: BigInt(quantity) });
      }
      continue;
    }
    const [cost, quantity] = [BigInt(row.cost), BigInt(row.quantity)];
    if (row.what === "t") {
      answer.totals.push({ dimension: row.dimension, cost, quantity });
      continue;
    }
    const key: UsageKey = Object.fromEntries(columns.map((column, index) => [column, row[`key_${index}`] ?? ""]));
    answer.groups[group] = { key, cost, quantity };
  }
  return answer;
}
