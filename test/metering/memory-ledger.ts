/**
 * The usage ledger in plain maps: the same levels and the same parts as the databases keep, so that the rules of the
 * metering room are tried out thousands of times a second. It speaks the whole port.
 */
import { hourMs, hourOf } from "../../src/lib/time/utc-calendar.ts";
import type {
  RateOf,
  UsageAnswer,
  UsageChange,
  UsageEvent,
  UsageGroup,
  UsageKey,
  UsageLedger,
  UsagePart,
  UsageQuestion,
  UsageSeries,
  UsageSpan,
} from "../../src/store/usage/port.ts";
import { USAGE_COLUMNS } from "../../src/store/usage/port.ts";
import {
  asksForNames,
  costOf,
  HOUR_LEVEL,
  isWithinHour,
  levelOf,
  overlaps,
  quantityWithin,
  ROLLUP_LEVELS,
} from "../../src/store/usage/rollup.ts";
import { seriesKey } from "../../src/store/usage/series.ts";

interface Amount {
  cost: bigint;
  quantity: bigint;
}

interface Row extends Amount {
  series: UsageSeries;
  hour: number;
}

export class MemoryLedger implements UsageLedger {
  readonly events = new Map<string, UsageEvent>();
  readonly spans = new Map<string, { node: string; span: UsageSpan }>();
  readonly covered = new Map<string, { untilMs: number; era: number }>();
  readonly #rollups = new Map<number, Map<string, Row>>();
  readonly #meteredUntil = new Map<string, number>();

  async record(change: UsageChange, rateOf: RateOf): Promise<void> {
    for (const event of change.events ?? []) this.#append(event, rateOf);
    for (const { node, series, untilMs } of change.close ?? []) {
      this.spans.delete(`${node} ${seriesKey(series)}`);
      this.#meteredUntil.set(`${node} ${seriesKey(series)}`, untilMs);
    }
    for (const open of change.open ?? []) this.spans.set(`${open.node} ${seriesKey(open.span.series)}`, open);
    if (change.covered) this.covered.set(change.covered.node, change.covered);
  }

  async meterState(node: string) {
    const covered = this.covered.get(node);
    const spans = [...this.spans.values()].filter((open) => open.node === node).map(({ span }) => span);
    return covered ? { coveredUntilMs: covered.untilMs, era: covered.era, spans } : null;
  }

  async seriesState(node: string, series: readonly UsageSeries[]) {
    return series.map((one) => ({
      meteredUntilMs: this.#meteredUntil.get(`${node} ${seriesKey(one)}`) ?? null,
      elsewhere: [...this.spans.values()]
        .filter((open) => open.node !== node && seriesKey(open.span.series) === seriesKey(one))
        .map((open) => ({ ...open, coveredUntilMs: this.#coveredUntil(open.node) })),
    }));
  }

  async ask(question: UsageQuestion): Promise<UsageAnswer> {
    const { columns, bucketHours, bucketShiftHours } = question;
    const groups = groupRows(this.#rows(question, question.totalParts), columns)
      .sort((a, b) => compareGroups(a, b, columns))
      .filter((group) => isAfter(group, question))
      .slice(0, question.limit);
    const totals = groupRows(this.#rows(question, question.totalParts), ["dimension"]);
    const places = new Map(
      groups.map(({ key }, place) => [JSON.stringify(columns.map((column) => key[column])), place]),
    );
    const cells = this.#rows(question, question.bucketParts)
      .map((row) => ({ ...row, group: places.get(JSON.stringify(columns.map((column) => row.series[column]))) ?? -1 }))
      .filter(({ group }) => group >= 0)
      .map(({ group, hour, cost, quantity }) => ({
        group,
        hour: Math.floor((hour + bucketShiftHours) / bucketHours) * bucketHours - bucketShiftHours,
        cost,
        quantity,
      }));
    return {
      groups,
      totals: totals.map(({ key, cost, quantity }) => ({ dimension: key.dimension ?? "", cost, quantity })),
      cells,
    };
  }

  async vouchedMs(sinceMs: number): Promise<number | null> {
    const living = [...this.covered.values()].map(({ untilMs }) => untilMs).filter((untilMs) => untilMs > sinceMs);
    return living.length > 0 ? Math.min(...living) : null;
  }

  async resourceTypes(
    question: Pick<UsageQuestion, "accountId" | "startMs" | "endMs" | "rateOf">,
    parts: readonly UsagePart[],
  ) {
    const rows = this.#rows({ ...question, filter: {}, columns: [] }, parts);
    return [...new Set(rows.map(({ series }) => series.resourceType))];
  }

  #append(event: UsageEvent, rateOf: RateOf): void {
    if (!isWithinHour(event)) throw new Error("an event must not cross a full hour");
    const id = JSON.stringify([seriesKey(event.series), event.startMs, event.key]);
    if (this.events.has(id)) return;
    this.events.set(id, event);
    const hour = hourOf(event.startMs);
    const ground = this.#row(HOUR_LEVEL.id, event.series, hour);
    const quantity = BigInt(event.quantity);
    const cost = costOf(ground.quantity + quantity, rateOf(event.series.dimension, hour)) - ground.cost;
    for (const level of ROLLUP_LEVELS) {
      const series = level.named ? event.series : { ...event.series, resourceName: "", resourceUuid: "" };
      const row = this.#row(level.id, series, level.bucket(hour));
      row.quantity += quantity;
      row.cost += cost;
    }
  }

  #row(level: number, series: UsageSeries, hour: number): Row {
    const rows = this.#rollups.get(level) ?? new Map<string, Row>();
    this.#rollups.set(level, rows);
    const id = `${hour} ${seriesKey(series)}`;
    const row = rows.get(id) ?? { series, hour, cost: 0n, quantity: 0n };
    rows.set(id, row);
    return row;
  }

  #coveredUntil(node: string): number {
    return this.covered.get(node)?.untilMs ?? 0;
  }

  #rows(
    question: Pick<UsageQuestion, "accountId" | "filter" | "columns" | "startMs" | "endMs" | "rateOf">,
    parts: readonly UsagePart[],
  ): Row[] {
    const { accountId, filter } = question;
    const named = asksForNames(question);
    const wanted = (series: UsageSeries): boolean =>
      series.accountId === accountId &&
      USAGE_COLUMNS.every((column) => filter[column] === undefined || filter[column] === series[column]);
    return [...parts.flatMap((part) => this.#read(part, named, question.rateOf)), ...this.#running(question)].filter(
      ({ series }) => wanted(series),
    );
  }

  #read(part: UsagePart, named: boolean, rateOf: RateOf): Row[] {
    if (part.from === "rollup") {
      const rows = [...(this.#rollups.get(levelOf(part.grain, named).id)?.values() ?? [])];
      return rows.filter(({ hour }) => hour >= part.startHour && hour < part.endHour);
    }
    const sums = new Map<string, Row>();
    for (const event of this.events.values()) {
      if (hourOf(event.startMs) !== part.hour || !overlaps(event, part.startMs, part.endMs)) continue;
      const key = seriesKey(event.series);
      const row = sums.get(key) ?? { series: event.series, hour: part.hour, cost: 0n, quantity: 0n };
      row.quantity += quantityWithin(event, part.startMs, part.endMs);
      sums.set(key, row);
    }
    return [...sums.values()].map((row) => ({
      ...row,
      cost: costOf(row.quantity, rateOf(row.series.dimension, row.hour)),
    }));
  }

  #running({ startMs, endMs }: Pick<UsageQuestion, "startMs" | "endMs">): Row[] {
    return [...this.spans.values()].flatMap(({ node, span }) => {
      const hour = hourOf(span.startMs);
      const fromMs = Math.max(span.startMs, startMs);
      const toMs = Math.min(this.#coveredUntil(node), hourMs(hour + 1), endMs);
      if (toMs <= fromMs) return [];
      const quantity = BigInt(span.ratePerMs) * BigInt(toMs - fromMs);
      return [{ series: span.series, hour, quantity, cost: costOf(quantity, span.price) }];
    });
  }
}

function groupRows(rows: readonly Row[], columns: UsageQuestion["columns"]): UsageGroup[] {
  const groups = new Map<string, UsageGroup>();
  for (const { series, cost, quantity } of rows) {
    const key = pick(series, columns);
    const id = JSON.stringify(columns.map((column) => key[column]));
    const group = groups.get(id) ?? { key, cost: 0n, quantity: 0n };
    group.cost += cost;
    group.quantity += quantity;
    groups.set(id, group);
  }
  return [...groups.values()];
}

const pick = (series: UsageSeries, columns: UsageQuestion["columns"]): UsageKey =>
  Object.fromEntries(columns.map((column) => [column, series[column]]));

function compareGroups(a: UsageGroup, b: UsageGroup, columns: UsageQuestion["columns"]): number {
  if (a.cost !== b.cost) return a.cost > b.cost ? -1 : 1;
  for (const column of columns) {
    const order = Buffer.compare(Buffer.from(a.key[column] ?? ""), Buffer.from(b.key[column] ?? ""));
    if (order !== 0) return order;
  }
  return 0;
}

function isAfter(group: UsageGroup, { after, columns }: UsageQuestion): boolean {
  if (!after) return true;
  const key = Object.fromEntries(columns.map((column, index) => [column, after.key[index] ?? ""]));
  return compareGroups(group, { key, cost: after.cost, quantity: 0n }, columns) > 0;
}
