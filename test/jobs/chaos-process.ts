/** A chaos server as a process that can be killed, paused and started again. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { join } from "node:path";

export interface ChaosServer {
  url: string;
  kill(): Promise<void>;
  signal(name: NodeJS.Signals): void;
}

export async function startChaosServer(dataDir: string, databaseUrl: string): Promise<ChaosServer> {
  const tasks = join(dataDir, "tasks");
  mkdirSync(tasks, { recursive: true });
  const child = spawn(process.execPath, [join(import.meta.dirname, "chaos-server.ts"), dataDir, tasks, databaseUrl], {
    stdio: ["ignore", "pipe", "inherit"],
  }) as ChildProcess & { stdout: NodeJS.ReadableStream };
  const exited = once(child, "exit");
  const [url] = (await Promise.race([
    once(child.stdout, "data"),
    exited.then(([code]) => Promise.reject(new Error(`the server ended with ${code}`))),
  ])) as [Buffer];
  return {
    url: url.toString().trim(),
    async kill() {
      child.kill("SIGKILL");
      await exited;
    },
    signal: (name) => void child.kill(name),
  };
}
