/** Starting a process and waiting for it, as POST /process and the MCP tool of the same purpose both do. */

import { setTimeout as pause } from "node:timers/promises";
import type { Daemon } from "../daemon-context.ts";
import { pathFromBody, toText } from "../files/byte-path.ts";
import { ApiError } from "../http/api-error.ts";
import { field, requiredText } from "../http/call.ts";
import { listeningPorts } from "../network/sockets.ts";
import type { ManagedProcess } from "./managed-process.ts";

const KEEP_ALIVE_DEFAULT_S = 600;
const PORT_LOOK_MS = 50;
const PORTS_MAX = 64;
const ENV_VARIABLES_MAX = 10_000;
/** Extra wait for ports after an exit with 0: a server that daemonizes exits before its port opens. */
const PORTS_AFTER_EXIT_MS = 10_000;

export interface ExecRequest {
  waitForCompletion: boolean;
  waitForPorts: number[];
  /** Limits the waiting, not the process. In ms. */
  waitMs: number | null;
}

export function startProcess(daemon: Daemon, body: Record<string, unknown>): [ManagedProcess, ExecRequest] {
  const command = requiredText(body, "command");
  const keepAlive = field(body, "keepAlive", "boolean") ?? false;
  if (keepAlive && daemon.environment.variable("BL_DISABLE_KEEPALIVE")) {
    throw new ApiError(400, "keepAlive is switched off in this sandbox.");
  }
  const timeoutS = field(body, "timeout", "integer");
  const name = field(body, "name", "string");
  const wait: ExecRequest = {
    waitForCompletion: field(body, "waitForCompletion", "boolean") ?? false,
    waitForPorts: portsOf(body.waitForPorts),
    waitMs: !keepAlive && timeoutS !== undefined && timeoutS > 0 ? timeoutS * 1000 : null,
  };
  const livesMs = keepAlive ? lifetimeMs(timeoutS) : null;
  const process = daemon.processes.start({
    command,
    ...(name === undefined ? {} : { name }),
    workingDir: folderOf(daemon, field(body, "workingDir", "string")),
    env: envOf(body.env),
    restartOnFailure: field(body, "restartOnFailure", "boolean") ?? false,
    maxRestarts: field(body, "maxRestarts", "integer") ?? 0,
    keepAlive,
    lifetimeMs: livesMs,
    timeoutS: ((keepAlive ? livesMs : wait.waitMs) ?? 0) / 1000,
    stdin: field(body, "stdin", "boolean") ?? false,
  });
  return [process, wait];
}

/** Waits as requested; throws 422 when the time is up. The process continues either way. */
export async function awaitProcess(process: ManagedProcess, request: ExecRequest, signal: AbortSignal): Promise<void> {
  const deadlineMs = request.waitMs === null ? Number.POSITIVE_INFINITY : Date.now() + request.waitMs;
  if (request.waitForPorts.length > 0) await awaitPorts(process, request, deadlineMs, signal);
  if (!request.waitForCompletion) return;
  const timeoutMs = Number.isFinite(deadlineMs) ? Math.max(0, deadlineMs - Date.now()) : null;
  const ended = await process.ended({ signal, timeoutMs });
  if (!ended && !signal.aborted) {
    throw new ApiError(422, `process timed out after ${(request.waitMs ?? 0) / 1000} seconds`);
  }
}

/**
 * Any listener counts, also one bound to the loopback address alone: the platform reaches ports from inside the
 * sandbox, so such a server is as reachable as any other.
 */
async function awaitPorts(
  process: ManagedProcess,
  { waitForPorts }: ExecRequest,
  deadlineMs: number,
  signal: AbortSignal,
): Promise<void> {
  const list = waitForPorts.join(", ");
  let endedAtMs: number | null = null;
  while (!signal.aborted) {
    const open = listeningPorts();
    if (waitForPorts.every((port) => open.has(port))) return;
    if (!process.running) endedAtMs ??= Date.now();
    const hopeless =
      endedAtMs !== null && (process.record.exitCode !== 0 || Date.now() - endedAtMs > PORTS_AFTER_EXIT_MS);
    if (hopeless) {
      throw new ApiError(422, `the process ended with exit code ${process.record.exitCode} before opening ${list}`);
    }
    if (Date.now() >= deadlineMs) throw new ApiError(422, `timed out waiting for ports ${list}`);
    await pause(Math.min(PORT_LOOK_MS, Math.max(1, deadlineMs - Date.now())));
  }
}

function folderOf(daemon: Daemon, workingDir: string | undefined): string {
  if (workingDir === undefined || workingDir === "") return daemon.environment.workDir;
  return toText(pathFromBody(workingDir, daemon.environment.pathBase));
}

/** Absent or negative: the default. Zero: no limit. */
function lifetimeMs(timeoutS: number | undefined): number | null {
  if (timeoutS === 0) return null;
  return (timeoutS === undefined || timeoutS < 0 ? KEEP_ALIVE_DEFAULT_S : timeoutS) * 1000;
}

function portsOf(value: unknown): number[] {
  if (value === undefined || value === null) return [];
  const isPort = (port: unknown): port is number => Number.isInteger(port) && Number(port) > 0 && Number(port) < 65536;
  if (!Array.isArray(value) || value.length > PORTS_MAX || !value.every(isPort)) {
    throw new ApiError(400, `"waitForPorts" must be a list of at most ${PORTS_MAX} port numbers.`);
  }
  return value;
}

export function envOf(value: unknown): Record<string, string> {
  if (value === undefined || value === null) return {};
  if (typeof value !== "object" || Array.isArray(value)) throw new ApiError(400, '"env" must be an object.');
  const entries = Object.entries(value);
  if (entries.length > ENV_VARIABLES_MAX)
    throw new ApiError(400, `"env" has more than ${ENV_VARIABLES_MAX} variables.`);
  for (const [name, text] of entries) {
    if (typeof text !== "string") throw new ApiError(400, `"env.${name}" must be a string.`);
    if (name === "" || /[=\0]/.test(name) || text.includes("\0")) {
      throw new ApiError(400, `"env" has a name or value that an environment cannot hold: ${JSON.stringify(name)}.`);
    }
  }
  return Object.fromEntries(entries) as Record<string, string>;
}
