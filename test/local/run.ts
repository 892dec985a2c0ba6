/** Commands inside a workload, for tests. */
import { call } from "../../src/node/conformance/call.ts";
import type { Observed } from "../../src/node/workload.ts";

export interface Ran {
  exitCode: number;
  output: string;
}

/** Runs a shell line inside and waits for its end. */
export async function run(workload: Pick<Observed, "endpoint">, command: string): Promise<Ran> {
  const body = { command, waitForCompletion: true, timeout: 60 };
  const { status, text } = await call(workload, "/process", { method: "POST", body });
  if (status !== 200) throw new Error(`${status} ${text}`);
  const { exitCode, logs } = JSON.parse(text) as { exitCode: number; logs: string };
  return { exitCode, output: logs };
}
