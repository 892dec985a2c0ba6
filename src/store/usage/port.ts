/**
 * The usage ledger as the metering room sees it: append-only events, the spans that are running now, and one way to
 * ask. Quantities are whole base units, costs whole 10^-10 USD; both are bigint wherever they are sums.
 */

/** What one line of the ledger is about. Names and types are text of the interface; the store attaches no meaning. */
export interface UsageSeries {
  accountId: string;
  workspace: string;
  resourceType: string;
  resourceName: string;
  resourceUuid: string;
  dimension: string;
  /** Who used it, where that is told apart: a key, a person. Absent = it is not. */
  subject?: string;
}

/**
 * Something that was used, once and for all. A span of time (`endMs > startMs`) was used evenly; a moment
 * (`endMs === startMs`) happened then. Series, start and key identify the event: recording it again changes nothing.
 */
export interface UsageEvent {
  series: UsageSeries;
  startMs: number;
  endMs: number;
  quantity: number;
  key: string;
}

/** Where an event lies in the order of time. */
export type UsageEventPlace = readonly [startMs: number, series: number, key: string];

/** Something that is running: `ratePerMs` base units in every millisecond since `startMs`. */
export interface UsageSpan {
  series: UsageSeries;
  startMs: number;
  ratePerMs: number;
  key: string;
  /** The price of its hour, so that what is still running can be priced where it lies. */
  price: UsageRate;
}

/** cost = quantity x numerator / denominator, rounded half up. */
export interface UsageRate {
  numerator: bigint;
  denominator: bigint;
}

/** Prices a dimension in the UTC hour with this number. */
export type RateOf = (dimension: string, hour: number) => UsageRate;

/** One commit of a meter: all of it or nothing. Applying it twice is applying it once. */
export interface UsageChange {
  events?: readonly UsageEvent[];
  /** A node holds one span of a series at most; this one takes the place of another. */
  open?: readonly { node: string; span: UsageSpan }[];
  /** Spans that end, and until when their node has metered the series by now. */
  close?: readonly { node: string; series: UsageSeries; untilMs: number }[];
  /** How far this node has seen its spans running; they count up to here and no further. */
  covered?: { node: string; untilMs: number; era: number };
}

/** What the ledger knows of a node after a restart. */
export interface MeterState {
  coveredUntilMs: number;
  era: number;
  spans: UsageSpan[];
}

/** Until when this node has metered a series, and the spans that other nodes hold open for it. */
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
 * How a window is read, piece by piece: whole buckets of a grain from the rollups, the broken hours at its ends from
 * the events themselves.
 */
export type UsagePart =
  | { from: "rollup"; grain: Grain; startHour: number; endHour: number }
  | { from: "events"; hour: number; startMs: number; endMs: number };

/** Whose usage a caller may read: an account, and of it these workspaces or all that it has or ever had. */
export interface UsageView {
  accountId: string;
  workspaces: readonly string[] | "all";
}

export interface UsageQuestion extends UsageView {
  filter: UsageKey;
  /** Whether the filter leaves few resources, so that each is followed on its own; absent = when it names one. */
  selective?: boolean;
  /** The columns that make a group; none means one group of everything. */
  columns: readonly UsageColumn[];
  startMs: number;
  endMs: number;
  /** Read for the groups and their totals: as few rows as possible. */
  totalParts: readonly UsagePart[];
  /** Read for the buckets: no part is coarser than a bucket. */
  bucketParts: readonly UsagePart[];
  /** Hours a bucket lasts and how far the first one lies from the epoch; rows of coarser parts keep their own start. */
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
  /** Which group of the page. */
  group: number;
  hour: number;
  cost: bigint;
  quantity: bigint;
}

/** One consistent picture: all of it is read from the same snapshot. */
export interface UsageAnswer {
  /** The asked page of groups: cost descending, then the key's columns in byte order. */
  groups: UsageGroup[];
  /** Over all groups, by dimension. */
  totals: { dimension: string; cost: bigint; quantity: bigint }[];
  /** The buckets of the groups on this page; without activity there is no cell. */
  cells: UsageCell[];
}

export interface UsageLedger {
  record(change: UsageChange, rateOf: RateOf): Promise<void>;
  meterState(node: string): Promise<MeterState | null>;
  seriesState(node: string, series: readonly UsageSeries[]): Promise<SeriesState[]>;
  ask(question: UsageQuestion): Promise<UsageAnswer>;
  /** Until when every node has metered that has vouched since `sinceMs`; null when none has. */
  vouchedMs(sinceMs: number): Promise<number | null>;
  /** The types with at least one event in [startMs, endMs), which `parts` cover. */
  resourceTypes(
    question: Pick<UsageQuestion, "accountId" | "workspaces" | "startMs" | "endMs" | "dimensions" | "rateOf">,
    parts: readonly UsagePart[],
  ): Promise<string[]>;
}
