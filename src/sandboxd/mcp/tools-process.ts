/** Tools for processes. */

import { flag, integer, list, map, text } from "../../lib/mcp/tool.ts";
import { pathFromBody, toText } from "../files/byte-path.ts";
import { awaitProcess, startProcess } from "../process/exec.ts";
import { processToWire, withTexts } from "../process/process-api.ts";
import type { SandboxTool } from "./tool.ts";

/** Longest wait. Clients and proxies give up after 60 s; before that the model is told to ask again. */
const WAIT_MAX_S = 58;
const WAIT_DEFAULT_S = 30;
const LOG_BYTES_MAX = 64 * 1024;

const identifier = { identifier: text("Name or pid of the process") };

export const PROCESS_TOOLS: SandboxTool[] = [
  {
    name: "processesList",
    description: "List the processes started in this sandbox, running and ended.",
    properties: {},
    required: [],
    run: (daemon) => ({ processes: daemon.processes.list().map(processToWire) }),
  },
  {
    name: "processExecute",
    description: "Run a shell command in the sandbox, optionally waiting for it to end or for its ports to open.",
    properties: {
      command: text("The shell command"),
      name: text("A name to find the process by"),
      workingDir: text("Where to run it; default /"),
      env: map("Environment variables", { additionalProperties: { type: "string" } }),
      waitForCompletion: flag("Wait until the process has ended"),
      timeout: integer(`Seconds to wait, default ${WAIT_DEFAULT_S}; with keepAlive the seconds it may live`),
      waitForPorts: list("Wait until these ports are open", { items: { type: "integer" } }),
      restartOnFailure: flag("Restart it when it fails"),
      maxRestarts: integer("At most this many restarts"),
      keepAlive: flag("Keep the sandbox awake while it runs"),
    },
    required: ["command"],
    run: async (daemon, args, signal) => {
      const keepAlive = args.keepAlive === true;
      const [process, request] = startProcess(daemon, {
        ...args,
        workingDir: typeof args.workingDir === "string" ? args.workingDir : "/",
      });
      const asked = !keepAlive && typeof args.timeout === "number" && args.timeout > 0 ? args.timeout : WAIT_DEFAULT_S;
      const waitMs = Math.min(asked, WAIT_MAX_S) * 1000;
      const waits = request.waitForCompletion || request.waitForPorts.length > 0;
      const late = waits ? await lateness(awaitProcess(process, { ...request, waitMs }, signal)) : null;
      const { pid, name, status, exitCode, logs } = await withTexts(process, LOG_BYTES_MAX);
      const base = { pid, name, status, exitCode };
      if (!waits) return base;
      return late === null ? { ...base, logs } : { ...base, logs, message: late, pollRequired: process.running };
    },
  },
  {
    name: "processGet",
    description: "Show one process with the end of its output.",
    properties: identifier,
    required: ["identifier"],
    run: (daemon, args) => withTexts(daemon.processes.find(String(args.identifier)), LOG_BYTES_MAX),
  },
  {
    name: "processGetLogs",
    description: "Show the end of a process's output.",
    properties: identifier,
    required: ["identifier"],
    run: async (daemon, args) => {
      const { logs, stdout, stderr } = await withTexts(daemon.processes.find(String(args.identifier)), LOG_BYTES_MAX);
      return { logs, stdout, stderr };
    },
  },
  {
    name: "processStop",
    description: "Ask a process to end (SIGTERM).",
    properties: identifier,
    required: ["identifier"],
    run: (daemon, args) => signalled(daemon.processes.find(String(args.identifier)), "SIGTERM"),
  },
  {
    name: "processKill",
    description: "End a process at once (SIGKILL).",
    properties: identifier,
    required: ["identifier"],
    run: (daemon, args) => signalled(daemon.processes.find(String(args.identifier)), "SIGKILL"),
  },
  {
    name: "fsGetWorkingDirectory",
    description: "Show where relative paths begin.",
    properties: {},
    required: [],
    run: ({ environment }) => ({ path: toText(pathFromBody(environment.workDir, environment.pathBase)) }),
  },
];

function signalled(
  process: import("../process/managed-process.ts").ManagedProcess,
  signal: "SIGTERM" | "SIGKILL",
): Record<string, unknown> {
  const sent = process.signal(signal);
  return {
    success: sent,
    message: sent ? `${signal} was sent to ${process.record.name}.` : `${process.record.name} is not running.`,
  };
}

/** The reason why waiting ended early, or null. */
const lateness = (waiting: Promise<void>): Promise<string | null> =>
  waiting.then(
    () => null,
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );
