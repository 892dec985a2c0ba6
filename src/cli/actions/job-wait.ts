/** Watches an execution of a job until it ends. */
import { setTimeout as pause } from "node:timers/promises";
import type { Client } from "../../client/client.ts";
import type { Operation } from "../../contract/operation.ts";
import type { Context } from "../command.ts";
import { EXIT } from "../failure.ts";
import { memberAt } from "../json-path.ts";

const LOOK_MS = 500;
const BAR_WIDTH = 30;

interface Stats {
  total: number;
  success: number;
  failure: number;
  cancelled: number;
  retried: number;
  running: number;
}

/** Returns the exit code: 0 when every task succeeded. */
export async function waitForExecution(
  get: Operation,
  params: Record<string, string>,
  client: Client,
  { isTerminal, note }: Pick<Context, "isTerminal" | "note">,
): Promise<number> {
  let shown = "";
  for (;;) {
    const execution = await client.call(get, { params, query: { inlineTasks: "false" } });
    const status = String(memberAt(execution, "status"));
    const over = memberAt(execution, "metadata.completedAt") !== undefined;
    const line = progress(status, memberAt(execution, "stats") as Stats);
    // A terminal shows one line that changes; a file gets one line per change.
    if (isTerminal) process.stderr.write(`\r\x1b[2K${line}${over ? "\n" : ""}`);
    else if (line !== shown) note(line);
    shown = line;
    if (over) return status === "succeeded" ? EXIT.ok : EXIT.failure;
    await pause(LOOK_MS);
  }
}

export function progress(status: string, { total, success, failure, cancelled, retried, running }: Stats): string {
  const done = success + failure + cancelled;
  const filled = Math.floor((done / Math.max(total, 1)) * BAR_WIDTH);
  const counts = { running, failed: failure, cancelled, retried };
  const words = Object.entries(counts).flatMap(([word, count]) => (count > 0 ? [`${count} ${word}`] : []));
  return [`[${"#".repeat(filled)}${"-".repeat(BAR_WIDTH - filled)}] ${done}/${total} ${status}`, ...words].join(", ");
}
