/** Tables whose columns follow from the shape of the rows, so a new kind needs nothing here; see lists.ts for others. */
import { styleText } from "node:util";
import { z } from "zod";
import type { Kind } from "../contract/kind.ts";
import { printable } from "../lib/printable.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../lib/time/clock.ts";
import { isObject, memberAt } from "./json-path.ts";
import type { RowsOf } from "./lists.ts";

interface Column {
  title: string;
  path: string;
}

/** Most columns of spec members; wider tables wrap on ordinary terminals and become unreadable. */
const SPEC_COLUMNS_MAX = 3;
const PLAIN_COLUMNS_MAX = 6;
const CELL_LENGTH_MAX = 80;

/** Members that name a row; the first one present is used. */
const NAME_PATHS = ["metadata.name", "name", "id", "client_id", "sub", "email", "key"];
/** Members shown in other columns, or useless in a list. */
const DULL = /^(created_?at|updated_?at|created_?by|updated_?by|status|state|statusReason|workspace|uid)$/i;

export const nameOf = (row: unknown): string => {
  const value = NAME_PATHS.map((path) => memberAt(row, path)).find(
    (found) => typeof found === "string" && found !== "",
  );
  return typeof value === "string" ? value : "";
};

/** The argument for an operation on this row: the member that its path parameter is named after, or else the name. */
export function identityOf(row: unknown, itemParam: string | null): string {
  const param = itemParam?.toLowerCase() ?? "";
  const members = isObject(row) ? Object.entries(row) : [];
  const own = members.find(([key]) => key.toLowerCase().replaceAll("_", "") === param)?.[1];
  const id = param.endsWith("id") && !isObject(memberAt(row, "metadata")) ? memberAt(row, "id") : undefined;
  return [own, id].find((value): value is string => typeof value === "string") ?? nameOf(row);
}

export interface TableOptions {
  kind: Kind | null;
  /** Columns of the kind's own. */
  rowsOf?: RowsOf | undefined;
  nowMs: number;
  /** Whether to cut long cells: for people, never for programs. */
  cut: boolean;
}

export function renderTable(records: readonly unknown[], { kind, rowsOf, nowMs, cut }: TableOptions): string {
  const rows = rowsOf ? records.flatMap(rowsOf) : records;
  const columns = rowsOf ? Object.keys(rows[0] ?? {}).map((title) => ({ title, path: title })) : columnsOf(rows, kind);
  const shorten = (text: string): string =>
    cut && text.length > CELL_LENGTH_MAX ? `${text.slice(0, CELL_LENGTH_MAX - 1)}…` : text;
  const lines = rows.map((row) => columns.map((column) => shorten(cellOf(row, column, nowMs))));
  const titles = columns.map(({ title }) => title);
  const widths = titles.map((title, index) => Math.max(title.length, ...lines.map((line) => line[index]?.length ?? 0)));
  const pad = (line: readonly string[], paint: (text: string, index: number) => string): string =>
    line
      .map((text, index) => paint(index === line.length - 1 ? text : text.padEnd(widths[index] ?? 0), index))
      .join("  ");
  return [
    pad(titles, (text) => styleText("dim", text)),
    ...lines.map((line) => pad(line, (text, index) => (titles[index] === "STATUS" ? paintStatus(text) : text))),
  ].join("\n");
}

function columnsOf(rows: readonly unknown[], kind: Kind | null): Column[] {
  const has = (path: string): boolean => rows.some((row) => isShown(memberAt(row, path)));
  const namePath = NAME_PATHS.find(has) ?? "id";
  const status = has("status") ? [{ title: "STATUS", path: "status" }] : [];
  // RUNNING or STANDBY of a sandbox; other kinds have an object as state, which is not shown.
  const state = has("state") ? [{ title: "STATE", path: "state" }] : [];
  const created = ["metadata.createdAt", "createdAt", "created_at"].find(has);
  const age = created ? [{ title: "AGE", path: created }] : [];
  const node = has("metadata.node") ? [{ title: "NODE", path: "metadata.node" }] : [];
  const isResource = rows.some((row) => isObject(memberAt(row, "metadata")));
  const between = isResource
    ? specMembers(rows, kind).map((key) => ({ title: titleOf(key), path: `spec.${key}` }))
    : plainMembers(rows, namePath).map((key) => ({ title: titleOf(key), path: key }));
  return [
    { title: titleOf(namePath.split(".").at(-1) ?? ""), path: namePath },
    ...between,
    ...status,
    ...state,
    ...node,
    ...age,
  ];
}

/** In the order of the declaration, without members that the platform sets itself. */
function specMembers(rows: readonly unknown[], kind: Kind | null): string[] {
  const declared = kind?.spec instanceof z.ZodObject ? Object.keys(kind.spec.shape) : [];
  return declared
    .filter((key) => !kind?.readOnlySpec.includes(key))
    .filter((key) => rows.some((row) => isShown(memberAt(row, `spec.${key}`))))
    .slice(0, SPEC_COLUMNS_MAX);
}

function plainMembers(rows: readonly unknown[], namePath: string): string[] {
  const keys = new Set(rows.flatMap((row) => (isObject(row) ? Object.keys(row) : [])));
  return [...keys]
    .filter((key) => key !== namePath && !DULL.test(key) && rows.some((row) => isShown(memberAt(row, key))))
    .slice(0, PLAIN_COLUMNS_MAX);
}

const isShown = (value: unknown): boolean =>
  (typeof value === "string" && value !== "") || typeof value === "number" || typeof value === "boolean";

const titleOf = (key: string): string =>
  key
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .replaceAll("_", " ")
    .toUpperCase();

function cellOf(row: unknown, { path, title }: Column, nowMs: number): string {
  const value = memberAt(row, path);
  if (!isShown(value)) return "-";
  if (title === "AGE") return ageOf(Date.parse(String(value)), nowMs);
  return printable(String(value)).replace(/\s+/g, " ");
}

export function ageOf(thenMs: number, nowMs: number): string {
  const age = Math.max(0, nowMs - thenMs);
  if (Number.isNaN(age)) return "-";
  if (age < MINUTE_MS) return `${Math.floor(age / SECOND_MS)}s`;
  if (age < HOUR_MS) return `${Math.floor(age / MINUTE_MS)}m`;
  if (age < DAY_MS) return `${Math.floor(age / HOUR_MS)}h`;
  return `${Math.floor(age / DAY_MS)}d`;
}

const GOOD = new Set(["DEPLOYED", "BUILT", "READY", "VERIFIED", "SUCCEEDED", "COMPLETED"]);
const BAD = new Set(["FAILED", "ERROR", "TERMINATED", "CANCELLED"]);

function paintStatus(padded: string): string {
  const word = padded.trim().toUpperCase();
  return styleText(GOOD.has(word) ? "green" : BAD.has(word) ? "red" : "yellow", padded);
}
