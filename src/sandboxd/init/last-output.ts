/** The end of the output files as lines of init's own standard output; see `OutputFrame` in the wire contract. */
import { closeSync, constants, fstatSync, openSync, readSync, writeSync } from "node:fs";
import type { OutputFrame, SandboxdConfig } from "../../contract/sandbox-wire.ts";
import { errnoOf } from "../http/api-error.ts";

/** Of each file. A cluster keeps at least 10 MB of a container's log, and base64 takes a third more. */
const BYTES_MAX = 3 * 1024 * 1024;
/** A line of a container's log has 16 KB before it is split. */
const FRAME_BYTES = 9 * 1024;
/** Time for a reader that has fallen behind. */
const WRITE_WAIT_MS = 10_000;

export function writeLastOutput({ exec, processLogs }: SandboxdConfig): void {
  const files = { stdout: exec?.stdoutFile ?? processLogs?.stdout, stderr: exec?.stderrFile ?? processLogs?.stderr };
  const until = Date.now() + WRITE_WAIT_MS;
  for (const stream of ["stdout", "stderr"] as const) {
    const path = files[stream];
    if (path === undefined) continue;
    try {
      for (const frame of framesOf(stream, path)) writeLine(`${JSON.stringify(frame)}\n`, until);
    } catch {
      // Nothing was written there, or nobody reads: the workload ends all the same.
    }
  }
}

function* framesOf(berth: OutputFrame["berth"], path: string): Iterable<OutputFrame> {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const stat = fstatSync(fd);
    if (!stat.isFile()) return;
    const { size } = stat;
    const buffer = Buffer.alloc(FRAME_BYTES);
    for (let at = Math.max(0, size - BYTES_MAX); at < size; ) {
      const read = readSync(fd, buffer, 0, FRAME_BYTES, at);
      if (read === 0) return;
      yield { berth, at, size, data: buffer.toString("base64", 0, read) };
      at += read;
    }
  } finally {
    closeSync(fd);
  }
}

function writeLine(line: string, untilMs: number): void {
  let bytes = Buffer.from(line);
  while (bytes.length > 0) {
    try {
      bytes = bytes.subarray(writeSync(1, bytes));
    } catch (error) {
      if (errnoOf(error) !== "EAGAIN" || Date.now() > untilMs) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
    }
  }
}
