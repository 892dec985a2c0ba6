/** Prints the result of a command in the requested format. */
import { styleText } from "node:util";
import type { Kind } from "../contract/kind.ts";
import { printable, printableJson } from "../lib/printable.ts";
import type { Context, OptionSpec } from "./command.ts";
import { isObject, memberAt } from "./json-path.ts";
import type { RowsOf } from "./lists.ts";
import { identityOf, renderTable, type TableOptions } from "./table.ts";

export const FORMATS = ["table", "pretty", "json", "yaml", "name"] as const;
export type Format = (typeof FORMATS)[number];

export const OUTPUT_OPTION: OptionSpec = {
  flags: "-o, --output <format>",
  about: "how to show the result",
  choices: FORMATS,
};

export interface Shown {
  value: unknown;
  format: Format;
  kind?: Kind | null;
  /** Columns of the kind's own in a table. */
  rowsOf?: RowsOf | undefined;
  /** The rows' kind in a manifest; absent when they cannot be applied. */
  manifestKind?: string | null;
  /** The path parameter that names one row. */
  itemParam?: string | null;
}

export async function render(
  { value, format, kind = null, rowsOf, manifestKind = null, itemParam = null }: Shown,
  context: Context,
): Promise<string> {
  const rows = Array.isArray(value) ? (value as unknown[]).map(withId) : null;
  switch (format) {
    case "json":
      return printableJson(value, 2);
    case "yaml":
      return (await manifests(value, manifestKind)).trimEnd();
    case "name":
      return (rows ?? [withId(value)]).map((row) => printable(identityOf(row, itemParam))).join("\n");
    case "pretty":
      return paintYaml((await manifests(value, null)).trimEnd());
    case "table":
      return tableOf(rows ?? [value], { kind, rowsOf }, context);
  }
}

/** Executions and tasks have no name, only an id in their metadata; it is shown as the name. */
function withId(row: unknown): unknown {
  const id = memberAt(row, "metadata.id");
  return isObject(row) && typeof id === "string" && memberAt(row, "metadata.name") === undefined && !("id" in row)
    ? { id, ...row }
    : row;
}

function tableOf(rows: readonly unknown[], shape: Pick<TableOptions, "kind" | "rowsOf">, context: Context): string {
  if (rows.every(isObject)) return renderTable(rows, { ...shape, nowMs: context.now(), cut: context.isTerminal });
  return rows.map((row) => printable(typeof row === "string" ? row : JSON.stringify(row))).join("\n");
}

/** YAML that `berth apply` accepts: one document per resource, each with its kind. */
async function manifests(value: unknown, manifestKind: string | null): Promise<string> {
  const { stringify } = await import("yaml");
  const options = { lineWidth: 0 };
  if (manifestKind === null) return stringify(value, options);
  const rows = Array.isArray(value) ? (value as unknown[]) : [value];
  return rows.map((row) => stringify({ kind: manifestKind, ...(row as object) }, options)).join("---\n");
}

const paintYaml = (text: string): string =>
  text
    .split("\n")
    .map((line) =>
      printable(line).replace(
        /^(\s*(?:- )?)([\w.$-]+:)/,
        (_, before: string, key: string) => before + styleText("cyan", key),
      ),
    )
    .join("\n");
