/** A server of its own for one measurement, used as any client uses it: over HTTP. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Pool } from "undici";
import { cgroupStats } from "../../src/node/drivers/local/machine/cgroup.ts";
import { loadRecords } from "../../src/node/drivers/local/workload/record.ts";
import { openRawClient } from "./raw-client.ts";

const KEY = "bench-admin-key-0123456789";
const MEMORY_MB = 4096;

export interface BenchPlatform {
  dataDir: string;
  url: string;
  apiKey: string;
  /** A management request; answers with the body of a 200. */
  ask(method: "GET" | "POST" | "DELETE", path: string, body?: object): Promise<unknown>;
  /** Until so many sandboxes stand ready. */
  stocked(count: number): Promise<void>;
  create(): Promise<string>;
  exec(sandbox: string, command: string): Promise<void>;
  remove(sandbox: string): Promise<void>;
  /** A request to the daemon inside; answers with the length of the body. */
  inside(sandbox: string, method: "GET" | "PUT", path: string, body?: Buffer): Promise<number>;
  /** RUNNING or STANDBY; asking does not wake it. */
  state(sandbox: string): Promise<string>;
  /** Bytes charged to each claimed sandbox. */
  memory(): number[];
  stop(): Promise<void>;
}

export async function startBenchPlatform(env: Record<string, string>): Promise<BenchPlatform> {
  const dataDir = mkdtempSync(join(tmpdir(), "berth-bench-"));
  const child = spawn(process.execPath, [join(import.meta.dirname, "../../src/main.ts"), "up"], {
    stdio: ["ignore", "inherit", "pipe"], // trouble of the server belongs into the picture
    env: {
      ...{ PATH: process.env.PATH, HOME: dataDir, PORT: "0", BERTH_DATA: dataDir, BERTH_API_KEY: KEY },
      ...{ BERTH_LOG_LEVEL: "warn", BERTH_ON_STOP: "kill", BERTH_STANDBY_AFTER: "600" },
      ...env,
    },
  });
  const url = await new Promise<string>((resolve, reject) => {
    child.stderr.on("data", (chunk: Buffer) => {
      const match = /API\s+(http\S+)\/v0/.exec(chunk.toString());
      if (match?.[1]) resolve(match[1]);
    });
    child.once("exit", (code) => reject(new Error(`the server ended with ${code}`)));
  });
  const headers = { authorization: `Bearer ${KEY}`, "service-version": "2026-04-28" };
  const pool = new Pool(url);
  const client = openRawClient(url, headers);
  const files = async (method: "GET" | "PUT", path: string, body?: Buffer) => {
    const type = "application/octet-stream";
    const answer = await pool.request({
      method,
      path,
      headers: { ...headers, accept: type, ...(body === undefined ? {} : { "content-type": type }) },
      ...(body === undefined ? {} : { body }),
    });
    if (answer.statusCode !== 200)
      throw new Error(`${method} ${path}: ${answer.statusCode} ${await answer.body.text()}`);
    return answer.body;
  };
  const records = () => loadRecords(join(dataDir, "runtime/workloads")).flatMap(({ record }) => record ?? []);
  return {
    dataDir,
    url,
    apiKey: KEY,
    ask: (method, path, body) => client.ask(method, path, body),
    async stocked(count) {
      const ready = () => records().filter(({ uid, phase }) => uid === null && phase === "ready").length;
      while (ready() < count) await pause(100);
      await pause(300); // the last of them is being warmed
    },
    async create() {
      const body = { metadata: {}, spec: { runtime: { memory: MEMORY_MB } } };
      const made = (await client.ask("POST", "/v0/sandboxes", body)) as { metadata: { name: string } };
      return made.metadata.name;
    },
    async exec(sandbox, command) {
      const body = { command, waitForCompletion: true };
      const done = (await client.ask("POST", `/main/sandboxes/${sandbox}/process`, body)) as { exitCode: number };
      if (done.exitCode !== 0) throw new Error(`${command} ended with ${done.exitCode}`);
    },
    async remove(sandbox) {
      await client.ask("DELETE", `/v0/sandboxes/${sandbox}`);
    },
    async inside(sandbox, method, path, body) {
      const answer = await files(method, `/main/sandboxes/${sandbox}${path}`, body);
      let length = 0;
      for await (const chunk of answer) length += (chunk as Buffer).length;
      return length;
    },
    state: async (sandbox) =>
      String(((await client.ask("GET", `/v0/sandboxes/${sandbox}`)) as { state?: string }).state),
    memory: () =>
      records()
        .filter(({ uid }) => uid !== null)
        .map(({ cgroup }) => cgroupStats(cgroup).memoryBytes ?? Number.NaN),
    async stop() {
      client.close();
      await pool.destroy();
      child.removeAllListeners("exit");
      child.kill("SIGTERM");
      await once(child, "exit");
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}
