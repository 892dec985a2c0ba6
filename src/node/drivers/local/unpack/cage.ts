/**
 * Runs unpacking jobs, each in a process of its own that sees two folders of the machine: its own executable,
 * read-only, and the target. It is launched like a workload (namespaces for mounts, processes, network and users;
 * system call filter; no new privileges), with a user range of its own where ids are mapped. The archive is passed as a
 * descriptor.
 *
 * On a machine without isolation the job is a plain process. Its only boundary is then its own code: every change is
 * relative to a descriptor and follows no link (`src/unpack/tree.ts`).
 */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdtempSync, openSync, readSync, statSync } from "node:fs";
import { join } from "node:path";
import { removeTree } from "../../../../lib/remove-tree.ts";
import type { Job, WorkKind } from "../../../../unpack/job.ts";
import type { CallOptions } from "../../../dial/endpoint.ts";
import { Slots } from "../../common/slots.ts";
import {
  ANSWER_BYTES_MAX,
  accepted,
  answerIn,
  JOBS_AT_ONCE,
  MEMORY_MB,
  TIME_GRACE_MS,
  TIME_MAX_MS,
  type Unpack,
  type UnpackRequest,
  withLowers,
} from "../../common/unpack-job.ts";
import { failureOf } from "../calls/spawner.ts";
import { CAP } from "../calls/syscalls.ts";
import { identityFor, type Machine, makeWorkloadDirs } from "../machine/machine.ts";
import { RESERVED_MB } from "../workload/launch.ts";
import { type LaunchPlan, launchSteps, type RootPart } from "../workload/launch-program.ts";

/** To set owners of files, also in folders closed to the job. Without effect outside the user namespace. */
const CAPABILITIES = [CAP.CHOWN, CAP.DAC_OVERRIDE, CAP.FOWNER, CAP.FSETID];
const [TARGET, PROGRAM, LOWER] = ["/target", "/program", "/lower-"];
const PROCESSES_MAX = 512; // of all jobs together, threads of the runtime included
/** `parts`: a root with the libraries that the executable needs. */
export function openCage(machine: Machine, parts: RootPart[]): Unpack {
  const slots = new Slots(JOBS_AT_ONCE);
  return <Kind extends WorkKind>(request: UnpackRequest<Kind>, { signal }: CallOptions = {}) =>
    slots.run(async () => {
      const timer = AbortSignal.timeout(TIME_MAX_MS + TIME_GRACE_MS);
      const either = AbortSignal.any([timer, ...(signal ? [signal] : [])]);
      const isolated = machine.grade !== "none";
      const { archive, target, lowers = [] } = request;
      const shown = lowers.map((path, index) => (isolated ? `${LOWER}${index}` : path));
      const work = withLowers(request.work, shown);
      const job: Job = { target: isolated ? TARGET : target, timeMaxMs: TIME_MAX_MS, work };
      const text = isolated
        ? await runCaged(machine, parts, job, { archive, target, lowers }, either)
        : await runPlain(machine, job, archive, either);
      signal?.throwIfAborted();
      return accepted<Kind>(answerIn<Kind>(text), request.work.kind);
    }, signal);
}

async function runCaged(
  machine: Machine,
  parts: RootPart[],
  job: Job,
  { archive, target, lowers }: Required<Pick<UnpackRequest, "archive" | "target" | "lowers">>,
  signal: AbortSignal,
): Promise<string> {
  signal.throwIfAborted();
  const dir = mkdtempSync(join(machine.spawner.tempDir, "unpack-"));
  makeWorkloadDirs(dir, parts.length);
  const plan: LaunchPlan = {
    identity: identityFor(machine, machine.grade === "mapped" ? (machine.ids?.unpack ?? null) : null),
    dir,
    parts,
    shared: [],
    mounts: [
      { base: machine.binDir, path: PROGRAM, readOnly: true },
      { base: target, path: TARGET, readOnly: false },
      ...lowers.map((base, index) => ({ base, path: `${LOWER}${index}`, readOnly: true })),
    ],
    hostname: "unpack",
    cgroups: [],
    memoryMb: MEMORY_MB,
    dataBytesMax: (MEMORY_MB + RESERVED_MB) * 1024 ** 2,
    processesMax: PROCESSES_MAX,
    capabilities: CAPABILITIES,
    seccomp: machine.seccomp,
    stdin: archive,
    argv: [`${PROGRAM}/sandboxd`, "unpack", JSON.stringify(job)],
    env: [],
  };
  let pid: number | null = null;
  const end = (): void => {
    if (pid !== null) kill(pid);
  };
  signal.addEventListener("abort", end);
  try {
    const report = await machine.spawner.start(
      (program) => launchSteps(program, plan),
      (said) => {
        pid = said.pid;
        if (signal.aborted) end();
        return false;
      },
    );
    if (report.failure) throw failureOf("The unpacking of an archive", report, "");
    return readAnswer(join(dir, "init.log"));
  } finally {
    signal.removeEventListener("abort", end);
    await removeTree(dir);
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // The job has ended by itself.
  }
}

async function runPlain(machine: Machine, job: Job, archive: string, signal: AbortSignal): Promise<string> {
  const input = openSync(archive, "r");
  const child = spawn(join(machine.binDir, "sandboxd"), ["unpack", JSON.stringify(job)], {
    env: {},
    stdio: [input, "pipe", "ignore"],
    signal,
    killSignal: "SIGKILL",
  });
  closeSync(input);
  const chunks: Buffer[] = [];
  let left = ANSWER_BYTES_MAX;
  child.stdout?.on("data", (chunk: Buffer) => {
    left -= chunk.length;
    if (left > 0) chunks.push(chunk);
  });
  await once(child, "close").catch(() => {}); // a job that was killed has no answer, which is reported below
  return Buffer.concat(chunks).toString("utf8");
}

function readAnswer(file: string): string {
  const size = Math.min(statSync(file).size, ANSWER_BYTES_MAX);
  const bytes = Buffer.alloc(size);
  const fd = openSync(file, "r");
  try {
    return bytes.toString("utf8", 0, readSync(fd, bytes, 0, size, 0));
  } finally {
    closeSync(fd);
  }
}
