/**
 * A ledger query as one statement, so that groups, totals and buckets come from one snapshot on both databases. It
 * reads small integers and joins names only after rows have been summed per series.
 */
import { type RawBuilder, sql } from "kysely";
import { jsonRows } from "../database/json-rows.ts";
import { int, type PartContext, partsOf, type Sql } from "./parts.ts";
import type { UsageColumn, UsageQuestion, UsageView } from "./port.ts";
import { asksForNames, namesResource } from "./rollup.ts";

const COLUMN: Record<UsageColumn, string> = {
  workspace: "workspace",
  resourceType: "resource_type",
  resourceName: "resource_name",
  resourceUuid: "resource_uuid",
  dimension: "dimension",
  subject: "subject",
};

/** A row of the answer: `g` is a group of the page, `t` the total of a dimension, `c` the buckets of a group. */
export interface QuestionRow {
  what: "g" | "t" | "c";
  /** The group's position on the page, starting at 1. */
  place: number;
  dimension: string;
  cost: string;
  quantity: string;
  /** `hour cost quantity`, separated by commas: one text is transferred far faster than thousands of rows. */
  buckets: string;
  [key: `key_${number}`]: string;
}

/** Joins are written in their intended order: SQLite keeps the order of a CROSS JOIN, PostgreSQL chooses its own. */
export function questionStatement(
  question: UsageQuestion,
  place: Pick<PartContext, "dialect" | "account" | "eventsSinceHour">,
): RawBuilder<QuestionRow> {
  const { columns, after, limit, filter } = question;
  const context: PartContext = {
    ...place,
    ...question,
    selective: question.selective ?? namesResource(filter),
    isNamed: namesResource(filter) ? sql`s.unnamed_id IS NOT NULL` : sql`s.named = 1`,
    named: asksForNames(question),
    isWanted: isWanted(question, place),
  };
  const keys = columns.map((column, index) => ({ source: sql.ref(`s.${COLUMN[column]}`), name: `key_${index}` }));
  const from = (alias: string): Sql[] => keys.map(({ name }) => sql.ref(`${alias}.${name}`));
  const same = [sql`true`, ...keys.map(({ source, name }) => sql`${source} = ${sql.ref(`p.${name}`)}`)];
  const nothing = listed(keys.map(() => sql`''`));
  return sql<QuestionRow>`WITH amounts AS MATERIALIZED (
      SELECT series, SUM(cost) AS cost, SUM(quantity) AS quantity
      FROM (${partsOf(question.totalParts, context, false)}) AS parts GROUP BY series
    ), sums AS MATERIALIZED (
      SELECT ${listed(keys.map(({ source, name }) => sql`${source} AS ${sql.ref(name)}`))}
        SUM(a.cost) AS cost, SUM(a.quantity) AS quantity
      FROM amounts a CROSS JOIN usage_series s WHERE s.id = a.series AND ${context.isWanted}
      ${keys.length > 0 ? sql`GROUP BY ${sql.join(keys.map(({ source }) => source))}` : sql`HAVING COUNT(*) > 0`}
    ), page AS MATERIALIZED (
      SELECT p.*, ROW_NUMBER() OVER (ORDER BY ${sql.join([sql`p.cost DESC`, ...from("p")])}) AS place
      FROM sums p WHERE ${after ? isAfter(after, from("p")) : sql`true`} ORDER BY place LIMIT ${int(limit)}
    ), members AS MATERIALIZED (
      SELECT a.series AS series, p.place AS place
      FROM amounts a CROSS JOIN usage_series s CROSS JOIN page p
      WHERE s.id = a.series AND ${sql.join(same, sql` AND `)} AND ${context.isWanted}
    )
    SELECT 'g' AS what, p.place AS place, ${listed(from("p"))} '' AS dimension,
      CAST(p.cost AS TEXT) AS cost, CAST(p.quantity AS TEXT) AS quantity, '' AS buckets FROM page p
    UNION ALL
    SELECT 't', 0, ${nothing} s.dimension, CAST(SUM(a.cost) AS TEXT), CAST(SUM(a.quantity) AS TEXT), ''
      FROM amounts a CROSS JOIN usage_series s WHERE s.id = a.series AND ${context.isWanted} GROUP BY s.dimension
    UNION ALL
    SELECT 'c', b.place, ${nothing} '', '', '',
        string_agg(CAST(b.bucket AS TEXT) || ' ' || CAST(b.cost AS TEXT) || ' ' || CAST(b.quantity AS TEXT), ',')
      FROM (SELECT c.place, c.bucket, SUM(c.cost) AS cost, SUM(c.quantity) AS quantity
        FROM (${cells(question, context)}) AS c GROUP BY c.place, c.bucket) AS b GROUP BY b.place`;
}

/** The buckets of the page's members: hours are rounded down to the start of their bucket. */
function cells({ bucketHours, bucketShiftHours, bucketParts }: UsageQuestion, context: PartContext): Sql {
  const [length, shift] = [sql.lit(bucketHours), sql.lit(bucketShiftHours)];
  if (bucketParts.length === 0)
    return sql`SELECT place, 0 AS bucket, 0 AS cost, 0 AS quantity FROM members WHERE false`;
  return sql`SELECT m.place, (m.hour + ${shift}) / ${length} * ${length} - ${shift} AS bucket, m.cost, m.quantity
    FROM (${partsOf(bucketParts, context, true)}) AS m`;
}

/** Condition for the rows of usage_series, `s`, that a question is about. */
export function isWanted(
  question: Pick<UsageQuestion, "filter" | "workspaces">,
  place: Pick<PartContext, "account" | "dialect">,
): Sql {
  const conditions = Object.entries(question.filter).map(
    ([column, value]) => sql`${sql.ref(`s.${COLUMN[column as UsageColumn]}`)} = ${value}`,
  );
  return sql.join([isVisible(question, place), ...conditions], sql` AND `);
}

/** Condition for the rows of usage_series, `s`, that a view may see. */
export function isVisible(
  { workspaces }: Pick<UsageView, "workspaces">,
  { account, dialect }: Pick<PartContext, "account" | "dialect">,
): Sql {
  const ofAccount = sql`s.account = ${int(account)}`;
  if (workspaces === "all") return ofAccount;
  const visible = jsonRows(
    dialect,
    { workspace: "text" },
    workspaces.map((workspace) => [workspace]),
  );
  return sql`${ofAccount} AND s.workspace IN (SELECT workspace FROM ${visible} AS visible)`;
}

function isAfter({ cost, key }: { cost: bigint; key: readonly string[] }, columns: readonly Sql[]): Sql {
  return sql`p.cost < ${cost} OR (p.cost = ${cost} AND (${sql.join(columns)}) > (${sql.join(key)}))`;
}

/** A field list that ends in a comma, or nothing when it is empty. */
const listed = (fields: readonly Sql[]): Sql => (fields.length > 0 ? sql`${sql.join(fields)},` : sql``);
