/** What keeps a test file from ending: its unfinished tests, and what its process waits for. */
import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { readEvents } from "./events.ts";
import { commandOf, processesOf } from "./left-behind.ts";

/** A signal that nothing in the suite uses; Node answers with a report of its handles. */
export const REPORT_SIGNAL = "SIGXCPU";
const REPORT_WAIT_MS = 15_000;

export const reportFlags = (folder: string): string[] => [
  "--report-on-signal",
  `--report-signal=${REPORT_SIGNAL}`,
  `--report-directory=${folder}`,
  "--report-exclude-env",
  "--report-exclude-network",
];

interface Handle {
  type: string;
  is_active: boolean;
  is_referenced?: boolean;
  localEndpoint?: { host?: string; port?: number } | string | null;
  remoteEndpoint?: { host?: string; port?: number } | string | null;
  pid?: number;
  firesInMsFromNow?: number;
}

interface NodeReport {
  libuv: Handle[];
}

/** The names of tests that began or wait, innermost last. */
export function unfinished(events: string): string[] {
  const open = new Map<number, string>();
  for (const event of readEvents(events)) {
    if (event.type === "enqueued") open.set(event.id, event.name);
    if (event.type === "completed") open.delete(event.id);
  }
  return [...open.values()];
}

/** Several lines for the reader of a log. Called before the process is ended. */
export async function whatHolds(pid: number, folder: string, events: string): Promise<string> {
  const tests = unfinished(events);
  const report = await reportOf(pid, folder);
  const open = report?.libuv.filter((handle) => handle.is_active && handle.is_referenced).map(describe);
  const children = processesOf({ group: pid }).filter((child) => child !== pid);
  return [
    tests.length > 0 ? `not finished: ${tests.join(" › ")}` : "all its tests had finished",
    ...(open ?? ["a loop: its process does not answer"]).map((line) => `held by ${line}`),
    ...children.map((child) => `held by process ${child}: ${commandOf(child)}`),
  ].join("\n");
}

async function reportOf(pid: number, folder: string): Promise<NodeReport | null> {
  try {
    process.kill(pid, REPORT_SIGNAL);
  } catch {
    return null; // it ended in this moment
  }
  for (let waited = 0; waited < REPORT_WAIT_MS; waited += 100) {
    const report = existsSync(folder) ? globSync(join(folder, "report.*.json"))[0] : undefined;
    const parsed = report ? parse(readFileSync(report, "utf8")) : null;
    if (parsed) return parsed;
    await delay(100);
  }
  return null;
}

/** A report that is still being written is not yet JSON. */
function parse(text: string): NodeReport | null {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function describe({ type, localEndpoint, remoteEndpoint, pid, firesInMsFromNow }: Handle): string {
  if (type === "process") return `child process ${pid}`;
  if (type === "timer") return `a timer that fires in ${firesInMsFromNow} ms`;
  const [local, remote] = [place(localEndpoint), place(remoteEndpoint)];
  if (type !== "tcp" && type !== "pipe") return type;
  if (!local && !remote) return `${type}`;
  return remote ? `${type} connection ${local} to ${remote}` : `${type} server listening on ${local}`;
}

function place(endpoint: Handle["localEndpoint"]): string {
  if (!endpoint) return "";
  return typeof endpoint === "string" ? endpoint : `${endpoint.host}:${endpoint.port}`;
}
