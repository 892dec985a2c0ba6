/** Rows as CSV, as `berth billing export` writes them. */
export const csvOf = (columns: readonly string[], rows: readonly object[]): string =>
  [columns.join(","), ...rows.map((row) => columns.map((column) => cellOf(Reflect.get(row, column))).join(","))]
    .map((line) => `${line}\n`)
    .join("");

/** A text that begins like a formula would be run by some spreadsheets. */
function cellOf(value: unknown): string {
  const text = typeof value === "string" && /^[=+@\t\r-]/.test(value) ? `'${value}` : String(value ?? "");
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
