/** Small tools that benchmarks share: closed-loop load, percentiles, a table. */
export interface Load {
  perSecond: number;
  p50Ms: number;
  p95Ms: number;
  p99Ms: number;
}

/** `clients` callers, each sending its next request when the last was answered, for `durationMs`. */
export async function load(clients: number, durationMs: number, request: (n: number) => Promise<void>): Promise<Load> {
  const times: number[] = [];
  let n = 0;
  const started = performance.now();
  const end = started + durationMs;
  await Promise.all(
    Array.from({ length: clients }, async () => {
      while (performance.now() < end) {
        const at = performance.now();
        await request(n++);
        times.push(performance.now() - at);
      }
    }),
  );
  return { perSecond: (times.length * 1000) / (performance.now() - started), ...percentiles(times) };
}

export function percentiles(times: number[]): Omit<Load, "perSecond"> {
  const sorted = times.toSorted((a, b) => a - b);
  const at = (share: number): number =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
  return { p50Ms: at(0.5), p95Ms: at(0.95), p99Ms: at(0.99) };
}

export function table(title: string, rows: Record<string, string | number>[]): void {
  const columns = Object.keys(rows[0] ?? {});
  const cells = rows.map((row) =>
    columns.map((column) => (typeof row[column] === "number" ? round(row[column]) : String(row[column] ?? ""))),
  );
  const widths = columns.map((column, at) => Math.max(column.length, ...cells.map((row) => row[at]?.length ?? 0)));
  const line = (row: string[]): string => row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join("  ");
  console.log(`\n${title}\n${line(columns)}\n${cells.map(line).join("\n")}`);
}

const round = (value: number): string =>
  Math.abs(value) >= 100 ? value.toFixed(0) : Math.abs(value) >= 1 ? value.toFixed(2) : value.toFixed(3);
