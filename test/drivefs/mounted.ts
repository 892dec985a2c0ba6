/** A folder of this machine mounted as a drive of another node: the real kernel and processes, with one socket between. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Spawner } from "../../src/node/drivers/local/calls/spawner.ts";
import { RemoteDrives } from "../../src/node/drivers/local/storage/remote-drives.ts";
import type { Mount } from "../../src/node/workload.ts";
import { closeAtEnd } from "../closing.ts";

/** Why no drive can be mounted here; false where one can. */
export const fuseMissing: string | false =
  process.platform !== "linux"
    ? "needs Linux"
    : process.getuid?.() !== 0
      ? "needs root for mounts: run the tests as root to include it"
      : existsSync("/dev/fuse")
        ? false
        : "needs /dev/fuse: modprobe fuse";

/** Far longer than the owner needs to start, also on a busy machine. */
const WAIT_MS = 60_000;

export interface MountOptions {
  drive?: string;
  readOnly?: boolean;
  path?: string;
}

export interface DriveOwner extends AsyncDisposable {
  /** The folder that has the files. */
  files: string;
  drives: RemoteDrives;
  /** Mounts the drive; answers with the mount point. */
  mount(options?: MountOptions): Promise<string>;
  /** Kills the server that has the files. */
  kill(): Promise<void>;
  start(): Promise<void>;
  /** Stops the server that has the files, which keeps its connections, or lets it go on. */
  freeze(isFrozen: boolean): void;
}

export async function openDriveOwner(options: { mountsMax?: number } = {}): Promise<DriveOwner> {
  const dir = mkdtempSync(join(tmpdir(), "berth-drivefs-"));
  const files = join(dir, "files");
  mkdirSync(files);
  const socket = join(dir, "drives.sock");
  let owner: ChildProcess | null = null;
  const start = async (): Promise<void> => {
    owner = spawn(process.execPath, [join(import.meta.dirname, "owner-process.ts"), socket, files], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    if (owner.stdout) await once(owner.stdout, "data");
  };
  const kill = async (): Promise<void> => {
    const ending = owner;
    owner = null;
    if (!ending || ending.exitCode !== null || ending.signalCode !== null) return;
    ending.kill("SIGKILL");
    await once(ending, "exit");
  };
  await start();
  const spawner = new Spawner(join(dir, "spawner"), process.arch === "x64" ? "x64" : "arm64");
  await spawner.open();
  const mounts: Mount[] = [];
  const drives = new RemoteDrives({
    ...{ dir: join(dir, "mounts"), spawner, socket, waitMs: WAIT_MS, ...options },
    mounts: () => mounts,
  });
  const stop = async (): Promise<void> => {
    closed();
    mounts.length = 0;
    await drives.sweep();
    await spawner.stop();
    await kill();
    rmSync(dir, { recursive: true, force: true });
  };
  const closed = closeAtEnd(stop);
  return {
    ...{ files, drives, kill, start },
    freeze: (isFrozen) => void owner?.kill(isFrozen ? "SIGSTOP" : "SIGCONT"),
    async mount({ readOnly = false, path = "/", drive = "drive" } = {}) {
      const source = { drive, node: "other", path };
      const taken = await drives.take(source, readOnly);
      mounts.push({ source, path: "/mnt", readOnly });
      await taken.release();
      return taken.path;
    },
    [Symbol.asyncDispose]: stop,
  };
}
