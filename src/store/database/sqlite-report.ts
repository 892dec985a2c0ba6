/**
 * Long reads on a thread of their own. SQLite answers in the calling thread, and a report over months of usage would
 * keep every other request waiting. The thread is started by the first report and has its own read-only connection.
 */
import { extname } from "node:path";
import { Worker } from "node:worker_threads";
import type { CompiledQuery } from "kysely";
import { PlatformError } from "../../contract/errors.ts";

/** Reports run one after the other; a report behind more than this many is refused. */
const WAITING_MAX = 64;

export interface ReportRequest {
  id: number;
  text: string;
  values: readonly unknown[];
}

export type ReportAnswer = { id: number; rows: unknown[] } | { id: number; error: Error };

interface Waiting {
  resolve(rows: unknown[]): void;
  reject(error: unknown): void;
}

export function createReportThread(file: string) {
  const waiting = new Map<number, Waiting>();
  let thread: Worker | null = null;
  let count = 0;

  const fail = (error: unknown): void => {
    thread = null;
    for (const { reject } of waiting.values()) reject(error);
    waiting.clear();
  };
  const start = (): Worker => {
    // The thread is TypeScript beside the sources and JavaScript in the package, like this file.
    const worker = new Worker(new URL(`./sqlite-report-thread${extname(import.meta.url)}`, import.meta.url), {
      workerData: file,
    });
    worker.on("message", (answer: ReportAnswer) => {
      const asked = waiting.get(answer.id);
      waiting.delete(answer.id);
      if (waiting.size === 0) worker.unref();
      if ("error" in answer) asked?.reject(answer.error);
      else asked?.resolve(answer.rows);
    });
    worker.on("error", fail);
    worker.on("exit", () => fail(new PlatformError("unavailable", "The report was interrupted. Try again.")));
    worker.unref();
    return worker;
  };

  return {
    read<Row>(query: CompiledQuery<unknown>): Promise<Row[]> {
      if (waiting.size >= WAITING_MAX) {
        throw new PlatformError("unavailable", "Too many reports are being made. Try again in a moment.", {
          headers: { "retry-after": "1" },
        });
      }
      thread ??= start();
      const { promise, resolve, reject } = Promise.withResolvers<unknown[]>();
      const id = ++count;
      waiting.set(id, { resolve, reject });
      thread.ref();
      thread.postMessage({ id, text: query.sql, values: query.parameters } satisfies ReportRequest);
      return promise as Promise<Row[]>;
    },
    async stop(): Promise<void> {
      const ending = thread;
      ending?.removeAllListeners("exit");
      fail(new PlatformError("unavailable", "The server is stopping."));
      await ending?.terminate();
    },
  };
}
