/** The value of a column as it is shown in lists and on pages. */
import { ageOf, timeOf } from "../lib/format.ts";
import { toneOf } from "../lib/tones.ts";
import { Badge } from "../ui/badge.tsx";
import type { Column } from "./columns.ts";

export function Cell({ column, row, href }: { column: Column; row: unknown; href: string | null }) {
  const value = column.value(row);
  if (column.as === "name") return href === null ? <span>{value}</span> : <a href={href}>{value}</a>;
  if (value === "") return null;
  if (column.as === "status") return <Badge tone={toneOf(value)}>{value}</Badge>;
  if (column.as === "age") return <span title={timeOf(value)}>{ageOf(value)}</span>;
  return (
    <span class={column.as === "mono" ? "mono" : ""} title={value}>
      {value}
    </span>
  );
}
