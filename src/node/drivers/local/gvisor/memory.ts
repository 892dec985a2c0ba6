/**
 * Sleep on disk: `runsc checkpoint` writes the processes and the memory of a workload to a folder and ends it, and
 * `runsc restore` starts it from there.
 *
 * gVisor cannot write a unix socket that is bound to a file of the machine, and ends the workload when it meets one. So
 * the daemon closes its own first, and the driver looks for others in the network namespace of the workload.
 */
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { PlatformError } from "../../../../contract/errors.ts";
import { CONTROL, SANDBOX_FILES, SANDBOX_RUN_DIR } from "../../../../contract/sandbox-wire.ts";
import { removeTree } from "../../../../lib/remove-tree.ts";
import type { Endpoint } from "../../../dial/endpoint.ts";
import { callControl } from "../../common/control.ts";
import { memoryDir, WHOLE } from "./bundle.ts";
import { runscArguments } from "./runsc.ts";
import { STAGE } from "./vm-stage.ts";

const run = promisify(execFile);

const UNFINISHED = "new";
/** Time for the daemon to close its sockets, or to open them again; usually milliseconds. */
const DAEMON_WAIT_MS = 30_000;
const LOOK_MS = 10;
const OWN_SOCKETS = [SANDBOX_FILES.api, SANDBOX_FILES.ports, SANDBOX_FILES.control] as readonly string[];

interface Sleeper {
  id: string;
  /** The first process of the workload. */
  pid: number;
  dir: string;
  /** Every process of the workload on the machine: gVisor's parts have network namespaces of their own. */
  processes(): number[];
}

/** When it resolves, the workload ends and its memory is on disk. When it rejects before that, the workload goes on. */
export async function writeMemory(sleeper: Sleeper): Promise<void> {
  const { dir, pid, id } = sleeper;
  writeFileSync(asleepFile(dir), "");
  try {
    await callControl(endpointOf(dir), CONTROL.sleep, {}).catch((cause) => {
      throw new PlatformError("conflict", "Something is connected to the workload.", { cause });
    });
    await socketsClosed(sleeper);
    const target = join(memoryDir(dir), UNFINISHED);
    rmSync(target, { recursive: true, force: true });
    mkdirSync(target, { mode: 0o700 });
    const [, ...words] = runscArguments("none", ["checkpoint", `--image-path=${STAGE.memory}/${UNFINISHED}`, id]);
    await run("nsenter", ["-t", String(pid), "-m", "-p", "-n", "--", STAGE.runsc, ...words]);
    renameSync(target, join(memoryDir(dir), WHOLE));
  } catch (error) {
    rmSync(asleepFile(dir), { force: true });
    throw error instanceof PlatformError ? error : notWritten(error);
  }
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
  const [held] = processes()
    .flatMap(boundSockets)
    .filter((path) => !own.includes(path));
  if (held !== undefined) throw heldSocket(held);
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
