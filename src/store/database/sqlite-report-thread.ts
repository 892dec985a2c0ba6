/** The thread behind sqlite-report.ts: one read-only connection, one query after the other. */
import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";
import type { ReportAnswer, ReportRequest } from "./sqlite-report.ts";

/** Prepared statements kept. Reports have few shapes; the limit guards against runaway dynamic SQL. */
const STATEMENTS_MAX = 100;

const database = new DatabaseSync(workerData as string, { readOnly: true });
database.exec(
  "PRAGMA busy_timeout = 5000; PRAGMA query_only = ON; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -64000; PRAGMA mmap_size = 1073741824",
);
const statements = new Map<string, StatementSync>();

parentPort?.on("message", ({ id, text, values }: ReportRequest) => {
  parentPort?.postMessage(answer(id, text, values));
});

function answer(id: number, text: string, values: readonly unknown[]): ReportAnswer {
  try {
    let statement = statements.get(text);
    if (!statement) {
      statement = database.prepare(text);
      if (statements.size >= STATEMENTS_MAX) statements.clear();
      statements.set(text, statement);
    }
    return { id, rows: statement.all(...(values as SQLInputValue[])) };
  } catch (error) {
    return { id, error: error as Error };
  }
}
