/**
 * Sleep on disk: `runsc checkpoint` writes the processes and the memory of a workload to a folder and ends it, and
 * `runsc restore` starts it from there.
 *
 * gVisor cannot write a unix socket that is bound to a file of the machine, and ends the workload when it meets one. So
 * the daemon closes its own first, and the driver looks for others in the network namespace of the workload.
 */
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { PlatformError } from "../../../../contract/errors.ts";
import { CONTROL, SANDBOX_FILES, SANDBOX_RUN_DIR } from "../../../../contract/sandbox-wire.ts";
import { removeTree } from "../../../../lib/remove-tree.ts";
import type { Endpoint } from "../../../dial/endpoint.ts";
import { COPYING_FILE } from "../../../dial/unix.ts";
import { callControl } from "../../common/control.ts";
import { memoryDir, WHOLE } from "./bundle.ts";
import { runscArguments } from "./runsc.ts";
import { STAGE } from "./vm-stage.ts";

const run = promisify(execFile);

const UNFINISHED = "new";
/** Time for the daemon to close its sockets, or to open them again; usually milliseconds. */
const DAEMON_WAIT_MS = 30_000;
const LOOK_MS = 10;
/** What stays free on the disk beside the memory. */
const KEEP_FREE_BYTES = 256 * 1024 * 1024;
/** Time for connections to the platform to end that the daemon has closed. */
const DOOR_WAIT_MS = 1_000;
/** How long a snapshot waits for a moment in which no request to the workload is open. */
const QUIET_WAIT_MS = 5_000;
const OWN_SOCKETS = [SANDBOX_FILES.api, SANDBOX_FILES.ports, SANDBOX_FILES.control] as readonly string[];

export interface Sleeper {
  id: string;
  /** The first process of the workload. */
  pid: number;
  dir: string;
  /** Every process of the workload on the machine: gVisor's parts have network namespaces of their own. */
  processes(): number[];
  isAlive(): boolean;
  /** What it holds in memory now. */
  memoryBytes(): number;
}

/** When it resolves, the workload ends and its memory is on disk. When it rejects before that, the workload goes on. */
export async function writeMemory(sleeper: Sleeper): Promise<void> {
  const { dir } = sleeper;
  try {
    requireRoom(sleeper);
    await closeSockets(sleeper);
    renameSync(await checkpoint(sleeper), join(memoryDir(dir), WHOLE));
  } catch (error) {
    mayWake(dir);
    throw error instanceof PlatformError ? error : notWritten(error);
  }
}

/**
 * Writes the memory of a workload that goes on, and answers with its folder. `meanwhile` runs while nothing inside does,
 * so that what it copies belongs to the memory.
 */
export async function copyMemory(sleeper: Sleeper, meanwhile: () => Promise<void>): Promise<string> {
  const { dir, id, isAlive } = sleeper;
  const marker = join(dir, COPYING_FILE);
  writeFileSync(marker, "");
  try {
    requireRoom(sleeper);
    await closeSockets(sleeper, QUIET_WAIT_MS);
    await runsc(sleeper, ["pause", id]);
    try {
      const written = await checkpoint(sleeper, "--leave-running");
      await meanwhile();
      return written;
    } finally {
      mayWake(dir);
      await runsc(sleeper, ["resume", id]);
    }
  } catch (error) {
    throw error instanceof PlatformError ? error : notWritten(error);
  } finally {
    mayWake(dir);
    await daemonAnswers(dir, isAlive).finally(() => rmSync(marker, { force: true }));
  }
}

/** Lets a workload go on that a server was copying when it was killed. */
export async function endCopy(sleeper: Sleeper): Promise<void> {
  const marker = join(sleeper.dir, COPYING_FILE);
  if (!existsSync(marker)) return;
  mayWake(sleeper.dir);
  await runsc(sleeper, ["resume", sleeper.id]).catch(() => {}); // it was not paused yet, or not any more
  rmSync(marker, { force: true });
}

/**
 * Writes the memory and answers with its folder. Not compressed: that would take a quarter of the space, four times as
 * long to write and twice as long to read.
 */
async function checkpoint(sleeper: Sleeper, ...more: string[]): Promise<string> {
  const target = join(memoryDir(sleeper.dir), UNFINISHED);
  rmSync(target, { recursive: true, force: true });
  mkdirSync(target, { mode: 0o700 });
  const options = ["--compression=none", ...more];
  await runsc(sleeper, ["checkpoint", ...options, `--image-path=${STAGE.memory}/${UNFINISHED}`, sleeper.id]);
  return target;
}

async function runsc({ pid }: Sleeper, command: string[]): Promise<void> {
  const [, ...words] = runscArguments("none", command);
  await run("nsenter", ["-t", String(pid), "-m", "-p", "-n", "--", STAGE.runsc, ...words]);
}

/** Resolves when nothing inside is connected to the machine; tries again for `waitMs` while something is. */
async function closeSockets(sleeper: Sleeper, waitMs = 0): Promise<void> {
  const { dir } = sleeper;
  writeFileSync(asleepFile(dir), "");
  for (const deadline = Date.now() + waitMs; ; await delay(LOOK_MS)) {
    const refusal = await callControl(endpointOf(dir), CONTROL.sleep, {}).then(
      () => null,
      (cause: unknown) => cause,
    );
    if (refusal === null) return socketsClosed(sleeper);
    if (Date.now() >= deadline)
      throw new PlatformError("conflict", "Something is connected to the workload.", { cause: refusal });
  }
}

/** A checkpoint that finds the disk full ends the workload. */
function requireRoom({ dir, memoryBytes }: Sleeper): void {
  const { bavail, bsize } = statfsSync(dir);
  if (bavail * bsize < memoryBytes() + KEEP_FREE_BYTES)
    throw new PlatformError("conflict", "The disk of the machine has no room for the memory of the workload.");
}

/** Removes the memory of a workload that runs again, or has ended. */
export const forgetMemory = (dir: string): Promise<void> => removeTree(join(memoryDir(dir), WHOLE));

/** The workload may open its sockets as soon as it runs again. */
export const mayWake = (dir: string): void => rmSync(asleepFile(dir), { force: true });

/** Resolves when the daemon answers. */
export async function daemonAnswers(dir: string, isAlive: () => boolean): Promise<void> {
  const deadline = Date.now() + DAEMON_WAIT_MS;
  for (;;) {
    const answer = await callControl(endpointOf(dir), CONTROL.activity, undefined).catch(() => null);
    if (answer !== null) return;
    if (!isAlive() || Date.now() > deadline)
      throw new PlatformError("unavailable", "The workload could not be brought back from disk.");
    await delay(LOOK_MS);
  }
}

const asleepFile = (dir: string): string => join(dir, "host", SANDBOX_FILES.asleep);
const endpointOf = (dir: string): Endpoint => ({ kind: "unix", node: "", dir: join(dir, "run") });

/**
 * Resolves when the daemon has closed its sockets; refuses when a program holds another one. gVisor's gofer lets go of a
 * closed socket late, so those of the daemon count as closed when their files are gone.
 */
async function socketsClosed({ dir, processes }: Sleeper): Promise<void> {
  const deadline = Date.now() + DAEMON_WAIT_MS;
  while (OWN_SOCKETS.some((name) => existsSync(join(dir, "run", name)))) {
    if (Date.now() > deadline) throw notWritten(new Error("the daemon has not closed its sockets"));
    await delay(LOOK_MS);
  }
  const own = OWN_SOCKETS.map((name) => `${SANDBOX_RUN_DIR}/${name}`);
  const doors = `${dir}/host/`;
  for (const last = Date.now() + DOOR_WAIT_MS; ; await delay(LOOK_MS)) {
    const others = processes()
      .flatMap(boundSockets)
      .filter((path) => !own.includes(path));
    const held = others.find((path) => !path.startsWith(doors));
    if (held !== undefined) throw heldSocket(held);
    if (others.length === 0) return;
    // The machine's end of a connection through a door closes a moment after the daemon's.
    if (Date.now() > last) throw new PlatformError("conflict", "The workload is connected to the platform.");
  }
}

/** Paths of the sockets in the network namespace of a process, without those of runsc itself. */
function boundSockets(pid: number): string[] {
  const lines = readTable(pid).trim().split("\n").slice(1);
  const paths = lines.map((line) => line.trim().split(/\s+/)[7] ?? "");
  return paths.filter((path) => path !== "" && !path.startsWith("@") && !path.startsWith(`${STAGE.state}/`));
}

function readTable(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/net/unix`, "utf8");
  } catch {
    return ""; // the process has ended
  }
}

const heldSocket = (path: string): PlatformError =>
  new PlatformError(
    "conflict",
    `A program of the workload listens on a unix socket in a file (${basename(path)}), which cannot be written to disk.`,
  );

const notWritten = (cause: unknown): PlatformError =>
  new PlatformError("internal", "The memory of the workload could not be written to disk.", { cause });
