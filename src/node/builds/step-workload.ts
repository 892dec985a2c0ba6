/** Runs one step of a build in a workload of its own and keeps what it changed as an image. */
import { setTimeout as delay } from "node:timers/promises";
import type { LogTag } from "../../contract/log-line.ts";
import type { BuildFilesJob } from "../../lib/build-files.ts";
import { BUILD_JOB_BYTES_MAX } from "../../lib/build-files.ts";
import type { Building } from "../capabilities/building.ts";
import type { ImageDocument } from "../capabilities/images.ts";
import type { Driver } from "../driver.ts";
import type { Exec, Mount } from "../workload.ts";
import { BuildFailed } from "./build-failed.ts";
import { stepBase } from "./step-names.ts";

export interface StepRun {
  uid: string;
  /** The image below; null: none. */
  image: string | null;
  /** Who runs the command, as in USER; empty: root. */
  user: string;
  exec: Exec;
  env: Record<string, string>;
  workDir: string;
  mounts: Mount[];
  network: boolean;
  /** Named in the message of a failure: `Dockerfile line 3: RUN make`. */
  what: string;
}

export interface StepDeps {
  driver: Driver;
  building: Building;
  log: LogTag | undefined;
  /** Why the step has to end, such as a full disk; null while it may go on. */
  shortage: () => string | null;
  /** What the caches of the build hold too much; null while there is room. */
  excess: () => Promise<string | null>;
}

/** Compilers and package managers need this much, whatever the limits of the workload that the image is for. */
const LIMITS = { memoryMb: 2048, cpus: 2 };
const LOOK_MS = 500;
/** Time from one measurement of the caches to the next: each of them reads all names in them. */
const MEASURE_EVERY_MS = 10_000;
const TAIL_BYTES = 1500;

/** `kept`: the name of the image, and what it says of itself; null for a step whose changes nobody needs. */
export async function runStep(
  run: StepRun,
  kept: { name: string; document: ImageDocument; mountPoints: string[] } | null,
  { driver, building, log, shortage, excess }: StepDeps,
  signal: AbortSignal,
): Promise<void> {
  const { uid, exec, env, workDir, mounts, network, what } = run;
  const below = stepBase(uid);
  await driver.destroy(uid); // of a server that ended in the middle
  await building.derive(below, run.image, { User: run.user });
  try {
    await driver.create(
      {
        ...{ uid, name: "build", image: below, env, workDir, mounts, exec },
        limits: LIMITS,
        network: network ? "outbound" : "closed",
        ...(log ? { log } : {}),
      },
      { signal },
    );
    await ended(uid, { driver, shortage, excess }, signal);
    const { exitCode, exitSignal, oom } = (await driver.observe(uid)) ?? {};
    if (exitCode !== 0) {
      const why = oom
        ? "it ran out of memory"
        : exitCode === undefined
          ? `ended by ${exitSignal}`
          : `exit code ${exitCode}`;
      throw new BuildFailed(`${what}: ${why}.${await tailOf(uid, driver)}`);
    }
    const why = await excess();
    if (why !== null) throw new BuildFailed(`${what}: ${why}`);
    if (kept) await building.commit(uid, kept.name, kept.document, kept.mountPoints);
  } finally {
    await driver.destroy(uid);
    await (await driver.capability("images"))?.remove(below);
  }
}

async function ended(
  uid: string,
  { driver, shortage, excess }: Pick<StepDeps, "driver" | "shortage" | "excess">,
  signal: AbortSignal,
): Promise<void> {
  const stop = new AbortController();
  const end = (why: string | null): void => {
    if (why !== null) stop.abort(new BuildFailed(`The build was ended: ${why}`));
  };
  const look = setInterval(() => end(shortage()), LOOK_MS);
  const measuring = new AbortController();
  const measured = (async () => {
    for (;;) {
      await delay(MEASURE_EVERY_MS, undefined, { signal: measuring.signal });
      end(await excess());
    }
  })().catch((error: unknown) => measuring.signal.aborted || stop.abort(error));
  try {
    await driver.waitExit(uid, { signal: AbortSignal.any([signal, stop.signal]) });
  } finally {
    clearInterval(look);
    measuring.abort();
    await measured;
  }
}

/** The end of what the command wrote. */
async function tailOf(uid: string, driver: Driver): Promise<string> {
  for (const stream of ["stderr", "stdout"] as const) {
    const { size } = await driver.readOutput(uid, stream, 0, 0);
    const { bytes } = await driver.readOutput(uid, stream, Math.max(0, size - TAIL_BYTES), TAIL_BYTES);
    const text = bytes.toString("utf8").trim();
    if (text !== "") return `\n${text}`;
  }
  return "";
}

/** The daemon's program that changes files; see lib/build-files.ts. */
export function filesCommand(job: BuildFilesJob, what: string): Exec {
  const text = JSON.stringify(job);
  if (Buffer.byteLength(text) > BUILD_JOB_BYTES_MAX) throw new BuildFailed(`${what}: the instruction is too long.`);
  return { builtin: "build-files", argv: [text] };
}
