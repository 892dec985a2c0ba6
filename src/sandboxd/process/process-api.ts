/** /process: exec, list, output, stop. */

import { LOG_FILE_BYTES_MAX } from "../../contract/sandbox-wire.ts";
import { ApiError, toApiError } from "../http/api-error.ts";
import { type Call, readJson } from "../http/call.ts";
import { readText, sendJsonWithTexts, type TextSource } from "../http/json-stream.ts";
import { sendJson, writeChunk } from "../http/send.ts";
import { awaitProcess, startProcess } from "./exec.ts";
import { TRUNCATION_MARKER } from "./log-file.ts";
import type { ManagedProcess } from "./managed-process.ts";
import { follow, LineCutter, type Stream, tailOf } from "./output.ts";

/** Most bytes of each stream in GET /process and GET /process/{id}; /logs has the rest. */
const INLINE_BYTES_MAX = 64 * 1024;
/** Most bytes of all streams together in a list: hundreds of ended processes are kept. */
const LIST_BYTES_MAX = 4 * 1024 * 1024;
/** Most bytes of each stream in the closing event, which repeats the output that the reader has already received. */
const RESULT_BYTES_MAX = 1024 * 1024;
const EXEC_KEEPALIVE_MS = 5_000;
const LOG_KEEPALIVE_MS = 30_000;

export async function listProcesses(call: Call): Promise<void> {
  const all = call.daemon.processes.list();
  const bytesMax = Math.min(INLINE_BYTES_MAX, Math.floor(LIST_BYTES_MAX / Math.max(all.length, 1)));
  const list: Record<string, unknown>[] = [];
  for (const process of all) list.push(await withTexts(process, bytesMax));
  sendJson(call.res, 200, list);
}

export async function getProcess(call: Call): Promise<void> {
  sendJson(call.res, 200, await withTexts(named(call), INLINE_BYTES_MAX));
}

export async function exec(call: Call): Promise<void> {
  const body = await readJson(call);
  const streaming = call.req.headers.accept?.includes("text/event-stream") === true;
  const [process, request] = startProcess(call.daemon, body);
  if (streaming) return streamExec(call, process);
  const waits = request.waitForCompletion || request.waitForPorts.length > 0;
  if (!waits) {
    return sendJson(call.res, 200, { ...processToWire(process), logs: null, stdout: null, stderr: null });
  }
  await awaitProcess(process, request, call.signal);
  if (!call.signal.aborted) await sendJsonWithTexts(call.res, processToWire(process), outputOf(process));
}

export async function getLogs(call: Call): Promise<void> {
  await sendJsonWithTexts(call.res, {}, outputOf(named(call)));
}

/** Plain text until the process ends: each line of output is prefixed with `stdout:` or `stderr:`. */
export async function streamLogs({ res, signal, ...call }: Call): Promise<void> {
  const process = named(call);
  const cutters: Record<Stream, LineCutter> = { stdout: new LineCutter(), stderr: new LineCutter() };
  res.writeHead(200, { "Content-Type": "text/plain; charset=utf-8" });
  res.flushHeaders();
  let aliveAtMs = Date.now();
  const send = async (stream: Stream, lines: string[]): Promise<boolean> => {
    if (lines.length === 0) return true;
    aliveAtMs = Date.now();
    return writeChunk(res, lines.map((line) => `${stream}:${line}\n`).join(""));
  };
  for await (const event of follow(process, signal)) {
    if (event === null) {
      if (Date.now() - aliveAtMs < LOG_KEEPALIVE_MS) continue;
      aliveAtMs = Date.now();
      if (!(await writeChunk(res, "[keepalive]\n"))) return;
      continue;
    }
    const cutter = cutters[event.stream];
    const lines = event.skipped ? [...cutter.end(), TRUNCATION_MARKER.trimEnd()] : [];
    if (!(await send(event.stream, [...lines, ...cutter.push(event.bytes)]))) return;
  }
  for (const stream of ["stdout", "stderr"] as const) await send(stream, cutters[stream].end());
  res.end();
}

export const stopProcess = (call: Call): void => signalProcess(call, "SIGTERM", "stopped");
export const killProcess = (call: Call): void => signalProcess(call, "SIGKILL", "killed");

function signalProcess(call: Call, signal: "SIGTERM" | "SIGKILL", done: string): void {
  const process = named(call);
  if (!process.signal(signal)) {
    throw new ApiError(404, `The process "${process.record.name}" is not running.`);
  }
  sendJson(call.res, 200, { message: `Process ${process.record.name} ${done}.` });
}

/** Sends one JSON object per line. The process continues when the client disconnects. */
async function streamExec({ res, signal }: Call, process: ManagedProcess): Promise<void> {
  res.writeHead(200, { "Content-Type": "application/x-ndjson" });
  res.flushHeaders();
  const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
  let aliveAtMs = Date.now();
  const send = (event: { type: string; data?: string }): Promise<boolean> => {
    aliveAtMs = Date.now();
    return writeChunk(res, `${JSON.stringify(event)}\n`);
  };
  try {
    for await (const event of follow(process, signal)) {
      if (event === null) {
        if (Date.now() - aliveAtMs >= EXEC_KEEPALIVE_MS && !(await send({ type: "keepalive" }))) return;
        continue;
      }
      if (event.skipped && !(await send({ type: event.stream, data: TRUNCATION_MARKER }))) return;
      const data = decoders[event.stream].decode(event.bytes, { stream: true });
      if (data !== "" && !(await send({ type: event.stream, data }))) return;
    }
    await send({ type: "result", data: JSON.stringify(await withTexts(process, RESULT_BYTES_MAX)) });
  } catch (error) {
    await send({ type: "error", data: toApiError(error).message });
  }
  res.end();
}

const named = (call: Pick<Call, "params" | "daemon">): ManagedProcess =>
  call.daemon.processes.find(decodeURIComponent(call.params[0] ?? ""));

/** The process without its output. */
export function processToWire({ record }: ManagedProcess): Record<string, unknown> {
  return {
    pid: String(record.pid),
    name: record.name,
    command: record.command,
    status: record.status,
    startedAt: new Date(record.startedAtMs).toUTCString(),
    completedAt: record.completedAtMs === null ? "" : new Date(record.completedAtMs).toUTCString(),
    exitCode: record.exitCode,
    workingDir: record.workingDir,
    restartOnFailure: record.restartOnFailure,
    maxRestarts: record.maxRestarts,
    restartCount: record.restartCount,
    keepAlive: record.keepAlive,
    timeout: record.timeoutS ?? 0,
  };
}

/** The output members of an answer. `logs` is all of stdout, then all of stderr. */
function outputOf(process: ManagedProcess): Record<string, TextSource[]> {
  // The limit of a file, which a flood may exceed for a moment.
  const stdout = tailOf(process.stdout, LOG_FILE_BYTES_MAX);
  const stderr = tailOf(process.stderr, LOG_FILE_BYTES_MAX);
  return { logs: [stdout, stderr], stdout: [stdout], stderr: [stderr] };
}

export async function withTexts(process: ManagedProcess, bytesMax: number): Promise<Record<string, unknown>> {
  const stdout = await readText(tailOf(process.stdout, bytesMax));
  const stderr = await readText(tailOf(process.stderr, bytesMax));
  return { ...processToWire(process), logs: stdout + stderr, stdout, stderr };
}
