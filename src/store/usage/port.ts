/**
 * The usage ledger as the metering room sees it: append-only events, open spans, and one query interface. Quantities
 * are whole base units, costs whole 10^-10 USD; sums of both are bigint.
 */

/** The subject of one line of the ledger. Names and types are opaque text to the store. */
export interface UsageSeries {
  accountId: string;
  workspace: string;
  resourceType: string;
  resourceName: string;
  resourceUuid: string;
  dimension: string;
  /** The key or person that caused the usage, where that is recorded. */
  subject?: string;
}

/**
 * Usage that is final. A span of time (`endMs > startMs`) was used evenly; a moment (`endMs === startMs`) happened
 * then. Series, start and key identify the event: recording it again changes nothing.
 */
export interface UsageEvent {
  series: UsageSeries;
  startMs: number;
  endMs: number;
  quantity: number;
  key: string;
}

/** Position of an event in the order of time. */
export type UsageEventPlace = readonly [startMs: number, series: number, key: string];

/** Usage in progress: `ratePerMs` base units per millisecond since `startMs`. */
export interface UsageSpan {
  series: UsageSeries;
  startMs: number;
  ratePerMs: number;
  key: string;
  /** The price in the span's hour, so that the database can price an open span. */
  price: UsageRate;
}

/** cost = quantity x numerator / denominator, rounded half up. */
export interface UsageRate {
  numerator: bigint;
  denominator: bigint;
}

/** Prices a dimension in the UTC hour with this number. */
export type RateOf = (dimension: string, hour: number) => UsageRate;

/** One commit of a meter: all of it or nothing. Applying it twice has the same effect as applying it once. */
export interface UsageChange {
  events?: readonly UsageEvent[];
  /** Spans to open. A node has at most one span per series; a new one replaces it. */
  open?: readonly { node: string; span: UsageSpan }[];
  /** Spans to close, with the time until which their node has metered the series. */
  close?: readonly { node: string; series: UsageSeries; untilMs: number }[];
  /** The time until which this node has seen its spans running; they count up to there. */
  covered?: { node: string; untilMs: number; era: number };
}

/** What the ledger knows about a node, for its restart. */
export interface MeterState {
  coveredUntilMs: number;
  era: number;
  spans: UsageSpan[];
}

/** The time until which this node has metered a series, and the open spans of other nodes for it. */
export interface SeriesState {
  meteredUntilMs: number | null;
  elsewhere: { node: string; span: UsageSpan; coveredUntilMs: number }[];
}

export const USAGE_COLUMNS = [
  "workspace",
  "resourceType",
  "resourceName",
  "resourceUuid",
  "dimension",
  "subject",
] as const;
export type UsageColumn = (typeof USAGE_COLUMNS)[number];
export type UsageKey = Partial<Record<UsageColumn, string>>;

export type Grain = "hour" | "day" | "week" | "month";

/**
 * How a window is read, part by part: whole buckets of a grain from the rollups, the partial hours at its ends from the
 * events.
 */
export type UsagePart =
  | { from: "rollup"; grain: Grain; startHour: number; endHour: number }
  | { from: "events"; hour: number; startMs: number; endMs: number };

/** The usage that a caller may read: an account, limited to these workspaces, or all that it has or ever had. */
export interface UsageView {
  accountId: string;
  workspaces: readonly string[] | "all";
}

export interface UsageQuestion extends UsageView {
  filter: UsageKey;
  /** Whether the filter leaves few resources, so that each is read separately. Default: true when it names one. */
  selective?: boolean;
  /** The columns to group by; without any, everything is one group. */
  columns: readonly UsageColumn[];
  startMs: number;
  endMs: number;
  /** Parts read for the groups and their totals, chosen to read as few rows as possible. */
  totalParts: readonly UsagePart[];
  /** Parts read for the buckets; none is coarser than a bucket. */
  bucketParts: readonly UsagePart[];
  /**
   * Length of a bucket and offset of the first one from the epoch, in hours. Rows of coarser parts keep their own
   * start.
   */
  bucketHours: number;
  bucketShiftHours: number;
  limit: number;
  after: { cost: bigint; key: readonly string[] } | null;
  rateOf: RateOf;
  /** Every dimension that has a price. */
  dimensions: readonly string[];
}

export interface UsageGroup {
  key: UsageKey;
  cost: bigint;
  quantity: bigint;
}

export interface UsageCell {
  /** Index of the group on the page. */
  group: number;
  hour: number;
  cost: bigint;
  quantity: bigint;
}

/** A consistent answer: everything is read from one snapshot. */
export interface UsageAnswer {
  /** The requested page of groups: cost descending, then the key's columns in byte order. */
  groups: UsageGroup[];
  /** Totals over all groups, by dimension. */
  totals: { dimension: string; cost: bigint; quantity: bigint }[];
  /** Buckets of the groups on this page. A bucket without activity has no cell. */
  cells: UsageCell[];
}

export interface UsageLedger {
  record(change: UsageChange, rateOf: RateOf): Promise<void>;
  meterState(node: string): Promise<MeterState | null>;
  seriesState(node: string, series: readonly UsageSeries[]): Promise<SeriesState[]>;
  ask(question: UsageQuestion): Promise<UsageAnswer>;
  /** The time until which every node that reported since `sinceMs` has metered; null when none has reported. */
  vouchedMs(sinceMs: number): Promise<number | null>;
  /** The types with at least one event in [startMs, endMs), which `parts` cover. */
  resourceTypes(
    question: Pick<UsageQuestion, "accountId" | "workspaces" | "startMs" | "endMs" | "dimensions" | "rateOf">,
    parts: readonly UsagePart[],
  ): Promise<string[]>;
}
