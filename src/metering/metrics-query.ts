/**
 * Parses the query of the metrics endpoint. Every refusal names its parameter. Unknown parameters are refused too: a
 * misspelt filter would otherwise silently answer for the whole account.
 */
import type { UsageColumn, UsageKey } from "../store/usage/port.ts";
import { USAGE_COLUMNS } from "../store/usage/port.ts";
import { DIMENSION_NAMES, isDimension } from "./dimensions.ts";
import { chooseResolution, invalidParameter, type MetricsWindow, parseWindow, type Resolution } from "./window.ts";

/**
 * The columns that each `groupBy` dimension adds to an entry. A name is unique only within its workspace and type, so
 * an entry by name carries both, and an entry by UUID all three: every column is true for the whole group.
 */
export const GROUP_BY = {
  workspace: ["workspace"],
  resource_type: ["resourceType"],
  resource_name: ["workspace", "resourceType", "resourceName"],
  resource_uuid: ["workspace", "resourceType", "resourceName", "resourceUuid"],
  billing_dimension: ["resourceType", "dimension"],
} as const satisfies Record<string, readonly UsageColumn[]>;

export type GroupBy = keyof typeof GROUP_BY;
export const GROUP_BY_NAMES = Object.keys(GROUP_BY) as GroupBy[];

export const GROUP_BY_MAX = 3;
export const LIMIT_MAX = 100;
const LIMIT_DEFAULT = 100;
/** Largest page of events: an event is a small flat object, and exports take many at a time. */
const EVENTS_LIMIT_MAX = 1000;
/** Longest filter value: longer than any name, UUID or type of a resource. */
const FILTER_LENGTH_MAX = 256;

const FILTERS = {
  workspace: "workspace",
  resourceType: "resourceType",
  resourceName: "resourceName",
  resourceUuid: "resourceUuid",
  billingDimension: "dimension",
} as const satisfies Record<string, UsageColumn>;

const UNSUPPORTED = ["label", "unit"];
const KNOWN = ["startTime", "endTime", "resolution", "groupBy", "limit", "cursor", ...Object.keys(FILTERS)];

export interface MetricsQuery {
  window: MetricsWindow;
  resolution: Resolution;
  groupBy: GroupBy[];
  filter: UsageKey;
  limit: number;
  cursor: string | null;
}

export function parseMetricsQuery(raw: Readonly<Record<string, unknown>>): MetricsQuery {
  const given = textParameters(raw, KNOWN);
  const window = parseWindow(required(given, "startTime"), required(given, "endTime"));
  return {
    window,
    resolution: chooseResolution(window, given.get("resolution")),
    groupBy: parseGroupBy(given.get("groupBy")),
    filter: parseFilter(given),
    limit: parseLimit(given.get("limit"), LIMIT_MAX),
    // An empty cursor is the `nextCursor` of a last page, sent back: it means none.
    cursor: given.get("cursor") || null,
  };
}

export interface EventsQuery {
  window: MetricsWindow;
  filter: UsageKey;
  limit: number;
  cursor: string | null;
}

/** Parses the query for single events: a window, filters and a page. */
export function parseEventsQuery(raw: Readonly<Record<string, unknown>>): EventsQuery {
  const given = textParameters(raw, ["startTime", "endTime", "limit", "cursor", ...Object.keys(FILTERS)]);
  return {
    window: parseWindow(required(given, "startTime"), required(given, "endTime")),
    filter: parseFilter(given),
    limit: parseLimit(given.get("limit"), EVENTS_LIMIT_MAX),
    cursor: given.get("cursor") || null,
  };
}

/** Parses the query of the resource-types helper: a window and nothing else. */
export function parseWindowQuery(raw: Readonly<Record<string, unknown>>): MetricsWindow {
  const given = textParameters(raw, ["startTime", "endTime"]);
  return parseWindow(required(given, "startTime"), required(given, "endTime"));
}

/** The columns of an entry in canonical order; the order of `groupBy` does not matter. */
export function columnsOf(groupBy: readonly GroupBy[]): UsageColumn[] {
  const wanted = new Set<UsageColumn>(groupBy.flatMap((name) => GROUP_BY[name]));
  return USAGE_COLUMNS.filter((column) => wanted.has(column));
}

function textParameters(raw: Readonly<Record<string, unknown>>, known: readonly string[]): Map<string, string> {
  const given = new Map<string, string>();
  for (const [name, value] of Object.entries(raw)) {
    if (value === undefined) continue;
    if (UNSUPPORTED.includes(name)) throw invalidParameter(name, "is not supported");
    if (!known.includes(name)) throw invalidParameter(printable(name), `is not known; use ${known.join(", ")}`);
    if (typeof value !== "string") throw invalidParameter(name, "must be given once");
    given.set(name, value);
  }
  return given;
}

function required(given: ReadonlyMap<string, string>, name: string): string {
  const value = given.get(name);
  if (value === undefined) throw invalidParameter(name, "is required");
  return value;
}

function parseGroupBy(text: string | undefined): GroupBy[] {
  if (text === undefined) return [];
  const names = text.split(",", GROUP_BY_NAMES.length + 1);
  if (names.length > GROUP_BY_MAX) throw invalidParameter("groupBy", `takes at most ${GROUP_BY_MAX} dimensions`);
  const unknown = names.find((name) => !Object.hasOwn(GROUP_BY, name));
  if (unknown !== undefined) throw invalidParameter("groupBy", `takes only ${GROUP_BY_NAMES.join(", ")}`);
  if (new Set(names).size !== names.length) throw invalidParameter("groupBy", "names a dimension twice");
  return GROUP_BY_NAMES.filter((name) => names.includes(name));
}

function parseFilter(given: ReadonlyMap<string, string>): UsageKey {
  const filter: UsageKey = {};
  for (const [parameter, column] of Object.entries(FILTERS)) {
    const value = given.get(parameter);
    if (value === undefined) continue;
    if (value === "" || value.length > FILTER_LENGTH_MAX || value.includes("\0")) {
      throw invalidParameter(parameter, `must be a text of 1 to ${FILTER_LENGTH_MAX} characters`);
    }
    if (parameter === "billingDimension" && !isDimension(value)) {
      throw invalidParameter(parameter, `must be one of ${DIMENSION_NAMES.join(", ")}`);
    }
    filter[column] = value;
  }
  return filter;
}

function parseLimit(text: string | undefined, max: number): number {
  if (text === undefined) return LIMIT_DEFAULT;
  if (!/^\d+$/.test(text) || Number(text) < 1) throw invalidParameter("limit", "must be a whole number from 1 on");
  return Math.min(Number(text), max);
}

/** Makes a caller's parameter name safe to repeat in a message. */
const printable = (name: string): string => name.replace(/[^\w.-]/g, "?").slice(0, 64);
