/** /network: the ports that a process holds, callbacks for new ports, and the tunnel. */

import type { Daemon } from "../daemon-context.ts";
import { ApiError } from "../http/api-error.ts";
import { type Call, readJson, requiredText } from "../http/call.ts";
import { sendJson } from "../http/send.ts";
import { statOf } from "../process/tree.ts";
import { socketsOfFamily } from "./sockets.ts";
import { checkTunnel } from "./tunnel-config.ts";

const LOOK_MS = 500;
const MONITORS_MAX = 64;
const CALLBACK_TIMEOUT_MS = 10_000;

interface Monitor {
  timer: NodeJS.Timeout;
  known: Set<number>;
}

const monitors = new Map<number, Monitor>();

export function getPorts(call: Call): void {
  const { pid, run } = pidOf(call);
  const ports = run === null ? [] : socketsOfFamily(run);
  sendJson(call.res, 200, { pid, ports });
}

export async function startMonitor(call: Call): Promise<void> {
  const { pid } = pidOf(call);
  const callback = callbackUrl(requiredText(await readJson(call), "callback"));
  if (!monitors.has(pid) && monitors.size >= MONITORS_MAX) {
    throw new ApiError(422, `${MONITORS_MAX} processes are watched already.`);
  }
  stop(pid);
  const known = new Set<number>();
  const timer = setInterval(() => look(call.daemon, pid, callback), LOOK_MS);
  monitors.set(pid, { timer, known });
  look(call.daemon, pid, callback);
  sendJson(call.res, 200, { message: `Ports of process ${pid} are being watched.` });
}

export function stopMonitor(call: Call): void {
  const { pid } = pidOf(call, true);
  if (!stop(pid)) throw new ApiError(422, `Ports of process ${pid} are not being watched.`);
  sendJson(call.res, 200, { message: `Ports of process ${pid} are no longer watched.` });
}

/** Tunnels are interfaces of the kernel; a sandbox has no right to make one, and the platform offers none yet. */
export async function putTunnel(call: Call): Promise<void> {
  const config = requiredText(await readJson(call), "config");
  checkTunnel(config);
  // The configuration is valid, so the failure is not a mistake of the caller.
  throw new ApiError(
    500,
    "This sandbox cannot open a WireGuard tunnel: its isolation gives it no network administration.",
  );
}

export function deleteTunnel(): void {
  throw new ApiError(400, "No tunnel is open.");
}

function look(daemon: Daemon, pid: number, callback: URL): void {
  const monitor = monitors.get(pid);
  if (!monitor) return;
  const run = runOf(daemon, pid);
  if (run === null) return void stop(pid);
  for (const socket of socketsOfFamily(run)) {
    if (socket.state !== "LISTEN" || monitor.known.has(socket.localPort)) continue;
    monitor.known.add(socket.localPort);
    void notify(callback, { pid, port: socket.localPort });
  }
}

/** A failed callback is not retried: the port counts as announced. */
async function notify(callback: URL, body: { pid: number; port: number }): Promise<void> {
  try {
    await fetch(callback, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(CALLBACK_TIMEOUT_MS),
    });
  } catch (error) {
    console.error(`port callback to ${callback.origin} failed: ${error instanceof Error ? error.message : error}`);
  }
}

function stop(pid: number): boolean {
  const monitor = monitors.get(pid);
  if (!monitor) return false;
  clearInterval(monitor.timer);
  return monitors.delete(pid);
}

/** `pid` is the one that clients know, that of the first run; `run` is the pid of the current run. */
function pidOf({ params, daemon }: Call, mayBeGone = false): { pid: number; run: number | null } {
  const text = params[0] ?? "";
  if (!/^\d{1,10}$/.test(text)) throw new ApiError(400, "The pid must be a number.");
  const pid = Number(text);
  const run = runOf(daemon, pid);
  if (run === null && !mayBeGone) throw new ApiError(422, `There is no running process with pid ${pid}.`);
  return { pid, run };
}

function runOf(daemon: Daemon, pid: number): number | null {
  const managed = daemon.processes.list().findLast(({ record }) => record.pid === pid && record.status === "running");
  if (managed?.record.run) return managed.record.run.pid;
  return statOf(pid) ? pid : null;
}

function callbackUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url?.protocol !== "http:" && url?.protocol !== "https:") {
    throw new ApiError(400, '"callback" must be an http or https address.');
  }
  return url;
}
