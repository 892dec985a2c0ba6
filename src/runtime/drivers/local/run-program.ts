/** Runs a program of system calls in a process of its own. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, unlinkSync, writeFileSync } from "node:fs";
import { getSystemErrorName } from "node:util";
import { PlatformError } from "../../../contract/errors.ts";
import { REPORT_TAG } from "./program.ts";

export interface Stepper {
  /** The stepper's executable. */
  path: string;
  /** Folder for program files; they are unlinked as soon as they are open. */
  tempDir: string;
}

export interface Report {
  pid: number | null;
  failure: { what: string; errno: number } | null;
}

let counter = 0;

/** Starts it with descriptors 0..5: nothing, log, log, the program, reports, readiness. */
export function startProgram(stepper: Stepper, subject: string, program: Buffer, logFd?: number): ChildProcess {
  const file = `${stepper.tempDir}/program-${process.pid}-${counter++}`;
  writeFileSync(file, program, { flag: "wx", mode: 0o600 });
  const fd = openSync(file, "r");
  unlinkSync(file);
  try {
    // The arguments are only there for whoever looks at the list of processes.
    return spawn(stepper.path, [subject], {
      argv0: "berth-stepper",
      detached: true,
      env: {},
      stdio: ["ignore", logFd ?? "ignore", logFd ?? "ignore", fd, "pipe", "pipe"],
    });
  } finally {
    closeSync(fd);
  }
}

/** Runs it to its end; throws what a failing step reported. */
export async function runProgram(stepper: Stepper, name: string, program: Buffer): Promise<void> {
  const child = startProgram(stepper, name, program);
  const chunks: Buffer[] = [];
  child.stdio[4]?.on("data", (chunk: Buffer) => chunks.push(chunk));
  const [code, signal] = (await once(child, "close")) as [number | null, string | null];
  if (code === 0) return;
  throw failureOf(name, parseReport(Buffer.concat(chunks)), signal ?? `exit ${code}`);
}

export function parseReport(bytes: Buffer): Report {
  const report: Report = { pid: null, failure: null };
  for (let at = 0; at + 16 <= bytes.length; ) {
    const tag = bytes.toString("latin1", at, at + 8);
    const value = Number(bytes.readBigInt64LE(at + 8));
    at += 16;
    if (tag === REPORT_TAG.pid) report.pid = value;
    else if (tag === REPORT_TAG.failure) {
      const end = bytes.indexOf(0, at);
      if (end < 0) break;
      report.failure = { what: bytes.toString("utf8", at, end), errno: value };
      at = end + 1;
    } else break;
  }
  return report;
}

/** The step's text and the system's word for the failure are for the operator; nothing of it is a secret. */
export function failureOf(name: string, { failure }: Report, otherwise: string): PlatformError {
  const reason = failure ? `${failure.what}: ${getSystemErrorName(failure.errno)}` : otherwise;
  return new PlatformError("internal", `${name} failed (${reason}).`, { detail: { name, reason } });
}
