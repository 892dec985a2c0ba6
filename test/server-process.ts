/** A real server process, for tests that kill it. */
import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { closeAtEnd } from "./closing.ts";
import { TEST_KEY } from "./platform.ts";
import { HEAP_FLAGS } from "./runner/heap-flags.ts";

export interface ServerProcess {
  child: ChildProcess;
  url: string;
  kill(signal: NodeJS.Signals): Promise<void>;
}

export interface ServerOptions {
  dataDir: string;
  databaseUrl?: string | null;
  env?: Record<string, string>;
}

export async function startServer({ dataDir, databaseUrl, env = {} }: ServerOptions): Promise<ServerProcess> {
  const child = spawn(process.execPath, [...HEAP_FLAGS, join(import.meta.dirname, "../bin/berth.js"), "up"], {
    stdio: ["ignore", "ignore", "pipe"],
    env: {
      PATH: process.env.PATH,
      HOME: dataDir,
      PORT: "0",
      BERTH_DATA: dataDir,
      BERTH_API_KEY: TEST_KEY,
      BERTH_LOG_LEVEL: "warn",
      BERTH_POOL_SIZE: "0",
      ...(databaseUrl ? { DATABASE_URL: databaseUrl } : {}),
      ...env,
    },
  });
  const closed = closeAtEnd(() => child.kill("SIGKILL"));
  const exited = new Promise<void>((resolve) =>
    child.once("exit", () => {
      closed();
      resolve();
    }),
  );
  const url = await addressOf(child);
  return {
    child,
    url,
    async kill(signal) {
      child.kill(signal);
      await exited;
    },
  };
}

/** The server prints its address once it listens. */
function addressOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    child.stderr?.on("data", (chunk: Buffer) => {
      text += chunk.toString();
      const match = /API\s+(http\S+)\/v0/.exec(text);
      if (match?.[1]) resolve(match[1]);
    });
    child.once("exit", (code) => reject(new Error(`the server ended with ${code}: ${text}`)));
  });
}
