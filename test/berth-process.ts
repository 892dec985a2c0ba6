/**
 * Real processes: the command line as a stranger runs it, and a server that is killed and started again.
 *
 *   const server = await startServer({ dataDir });
 *   const ended = await server.stop("SIGTERM");
 */
import { type ChildProcess, spawn } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { closeAtEnd } from "./closing.ts";
import { type Ended, runInHost } from "./commands/host.ts";
import { HEAP_FLAGS } from "./runner/heap-flags.ts";

export type { Ended };

const ROOT = join(import.meta.dirname, "..");

export interface RunOptions {
  env?: Record<string, string>;
  input?: string;
  /** Its input stays open, for the test to write to. */
  keepInput?: boolean;
  cwd?: string;
  /** The project's folder, where it is not this one. */
  root?: string;
}

export interface Spawned {
  child: ChildProcess;
  stdout(): string;
  stderr(): string;
  /** Resolves once what was printed so far matches; rejects when the process ends before that. */
  printed(pattern: RegExp): Promise<RegExpMatchArray>;
  ended: Promise<Ended>;
}

/** Only what a process needs: the variables of whoever runs the tests must not reach it. */
const cleanEnv = (extra: Record<string, string> = {}): Record<string, string> => ({
  PATH: process.env.PATH ?? "",
  HOME: join(tmpdir(), "berth-no-home"), // programs that berth starts, such as npm, may make it
  TZ: "UTC",
  ...extra,
});

/** `berth ARGS…` in a process of its own. */
export function spawnBerth(
  args: readonly string[],
  { env, input, keepInput, cwd, root = ROOT }: RunOptions = {},
): Spawned {
  const child = spawn(process.execPath, [...(root === ROOT ? HEAP_FLAGS : []), join(root, "bin/berth.js"), ...args], {
    env: cleanEnv(env),
    ...(cwd ? { cwd } : {}),
    stdio: ["pipe", "pipe", "pipe"],
  });
  const out = { stdout: "", stderr: "" };
  const waiting = new Set<() => void>();
  for (const name of ["stdout", "stderr"] as const) {
    child[name].setEncoding("utf8").on("data", (text: string) => {
      out[name] += text;
      for (const look of waiting) look();
    });
  }
  child.stdin.on("error", () => {}); // a process that ends early does not read what it is given
  if (!keepInput) child.stdin.end(input ?? "");
  const closed = closeAtEnd(() => child.kill("SIGKILL"));
  const ended = new Promise<Ended>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => {
      closed();
      resolve({ code, signal, ...out });
    });
  });
  return {
    child,
    stdout: () => out.stdout,
    stderr: () => out.stderr,
    ended,
    printed: (pattern) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const match = (out.stdout + out.stderr).match(pattern);
          if (!match) return;
          waiting.delete(look);
          resolve(match);
        };
        waiting.add(look);
        look();
        ended.then(() => reject(new Error(`ended without printing ${pattern}: ${out.stdout}${out.stderr}`)), reject);
      }),
  };
}

/**
 * `berth ARGS…` to its end, in a process that runs other commands before and after it. A test about the process itself,
 * such as its signals or a server that fails half way, uses `spawnBerth`.
 */
export function runBerth(args: readonly string[], options: RunOptions = {}): Promise<Ended> {
  const { env, input = "", cwd = process.cwd(), root = ROOT } = options;
  const order = { args, env: cleanEnv(env), cwd, input };
  return runInHost(root, order) ?? spawnBerth(args, options).ended;
}

export interface ServerProcess extends Spawned {
  url: string;
  /** Sends the signal and waits for the end. */
  stop(signal?: NodeJS.Signals): Promise<Ended>;
}

export interface ServerOptions extends RunOptions {
  dataDir: string;
  databaseUrl?: string | null;
  args?: readonly string[];
}

/** Resolves when the server says that it is ready. */
export async function startServer({ dataDir, databaseUrl, args = [], ...run }: ServerOptions): Promise<ServerProcess> {
  const spawned = spawnBerth(["up", "--port", "0", "--data", dataDir, ...args], {
    ...run,
    // A server that is killed would leave its pool of sandboxes behind.
    env: { BERTH_POOL_SIZE: "0", ...(databaseUrl ? { DATABASE_URL: databaseUrl } : {}), ...run.env },
  });
  const [, url = ""] = await spawned.printed(/API {8}(\S+)\/v0[\s\S]*Ctrl-C/);
  return {
    ...spawned,
    url,
    stop: (signal = "SIGTERM") => {
      spawned.child.kill(signal);
      return spawned.ended;
    },
  };
}
