/** The whole server with its store and ledger, and one model in it, in a process of its own. */
import type { ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startServer } from "../../test/berth-process.ts";

export interface WholeServer {
  child: ChildProcess;
  port: number;
  /** Of the one person in it. */
  apiKey: string;
}

export async function startWholeServer(baseUrl: string): Promise<WholeServer> {
  const apiKey = "bench-key-0123456789-0123456789";
  const dataDir = mkdtempSync(join(tmpdir(), "berth-bench-models-"));
  const env = { HOME: dataDir, BERTH_API_KEY: apiKey, BERTH_LOG_LEVEL: "warn", BERTH_POOL_SIZE: "0" };
  const { child, url } = await startServer({ dataDir, env });
  child.once("exit", () => rmSync(dataDir, { recursive: true, force: true }));
  const post = async (path: string, body: unknown): Promise<void> => {
    const headers = { authorization: `Bearer ${apiKey}`, "content-type": "application/json" };
    const response = await fetch(`${url}/v0${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  };
  await post("/integrations/connections", {
    metadata: { name: "c" },
    spec: { integration: "openai", config: { baseUrl }, secret: { apiKey: "key" } },
  });
  await post("/models", {
    metadata: { name: "m" },
    spec: { runtime: { type: "openai", model: "gpt-4o-mini" }, integrationConnections: ["c"] },
  });
  return { child, port: Number(new URL(url).port), apiKey };
}
