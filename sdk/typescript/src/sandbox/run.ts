/**
 * Runs one command to its end. The answer is a stream with signs of life, so a command may take hours and print
 * gigabytes without a time limit on the way.
 */
import type { Berth } from "../berth.ts";
import type { CallOptions } from "../core/call.ts";
import { BerthError } from "../core/errors.ts";
import { linesOf } from "../core/lines.ts";
import { randomWord } from "../core/random.ts";
import { endProcess, type Finished, processState } from "./process.ts";

export interface CommandOptions {
  /** Working directory; `~` is the home. */
  cwd?: string | undefined;
  /** Added to the sandbox's own variables. */
  env?: Readonly<Record<string, string>> | undefined;
}

export interface RunOptions extends CommandOptions {
  /** Written to its standard input, which is closed then. */
  input?: string | Uint8Array | undefined;
  /** Called with output as it is printed. */
  onStdout?: ((text: string) => void) | undefined;
  onStderr?: ((text: string) => void) | undefined;
  /** The command is killed when the signal ends. */
  signal?: AbortSignal | undefined;
  /** The command is killed after this many milliseconds. Default: no limit. */
  timeoutMs?: number | undefined;
}

interface RunEvent {
  type: "stdout" | "stderr" | "keepalive" | "result" | "error";
  data?: string;
}

/** The name lets a command be killed before its process id is known. */
const nameOfRun = (): string => `run-${randomWord(12)}`;

export async function runCommand(
  berth: Berth,
  address: string,
  command: string,
  options: RunOptions,
): Promise<Finished> {
  const { signal: outer, timeoutMs } = options;
  if (timeoutMs === undefined) return follow(berth, address, command, options, outer);
  const aborter = new AbortController();
  const abort = (): void => aborter.abort(outer?.reason);
  outer?.addEventListener("abort", abort, { once: true });
  if (outer?.aborted) abort();
  const late = new BerthError({
    code: "timeout",
    message: `The command did not end within ${timeoutMs} ms: ${command}`,
  });
  const timer = setTimeout(() => aborter.abort(late), timeoutMs);
  try {
    return await follow(berth, address, command, options, aborter.signal);
  } finally {
    clearTimeout(timer);
    outer?.removeEventListener("abort", abort);
  }
}

async function follow(
  berth: Berth,
  address: string,
  command: string,
  { cwd, env, input, onStdout, onStderr }: RunOptions,
  signal: AbortSignal | undefined,
): Promise<Finished> {
  const name = nameOfRun();
  const body = { command, name, workingDir: cwd, env, ...(input === undefined ? {} : { stdin: true }) };
  const request = {
    method: "POST",
    path: "/process",
    headers: { accept: "text/event-stream", "content-type": "application/json" },
  };
  const printed = { stdout: "", stderr: "" };
  const told = { stdout: onStdout, stderr: onStderr };
  signal?.throwIfAborted();
  const starting = berth.sendToWorkload(address, { ...request, body: JSON.stringify(body) }, async (answer) => answer);
  let isStarted = false;
  try {
    const response = await orAborted(starting, signal);
    isStarted = true;
    const writing = input === undefined ? null : writeInput(berth, address, name, input, { signal });
    for await (const line of linesOf(response, signal)) {
      const { type, data = "" } = JSON.parse(line) as RunEvent;
      if (type === "stdout" || type === "stderr") {
        printed[type] += data;
        told[type]?.(data);
      } else if (type === "result") {
        await writing;
        const { exitCode } = processState(JSON.parse(data));
        return { exitCode: exitCode ?? -1, ...printed };
      } else if (type === "error") throw new BerthError({ code: "refused", status: 422, message: data });
    }
  } catch (error) {
    const killed = signal?.aborted ? killStarted(berth, address, name, starting) : null;
    // A server that does not answer holds nobody up.
    if (isStarted) await killed;
    throw error;
  }
  throw new BerthError({ code: "broken_stream", message: `The connection ended before the command did: ${command}` });
}

/** A request that is cut off half-way may start a command after all: the start is awaited, however the signal ends. */
async function killStarted(berth: Berth, address: string, name: string, starting: Promise<Response>): Promise<void> {
  try {
    const response = await starting;
    await endProcess(berth, address, `/process/${name}/kill`, {});
    if (!response.bodyUsed) await response.body?.cancel();
  } catch {
    // The command was not started, or the sandbox is gone, which ends the command as well.
  }
}

function orAborted<Value>(promise: Promise<Value>, signal: AbortSignal | undefined): Promise<Value> {
  if (!signal) return promise;
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

/** A command may end without reading its input. */
async function writeInput(
  berth: Berth,
  address: string,
  name: string,
  input: string | Uint8Array,
  options: CallOptions,
): Promise<void> {
  const request = { ...options, method: "POST", path: `/process/${name}/stdin?end=true`, body: input };
  const headers = { "content-type": "application/octet-stream" };
  await berth.askWorkload(address, { ...request, headers }).catch(() => {});
}
