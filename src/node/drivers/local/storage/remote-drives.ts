/**
 * Drives of other nodes, mounted on this machine: one mount for each part of a drive and mode that workloads here use. A
 * mount outlives the server, as workloads do. It goes when no workload has it.
 */
import { createHash } from "node:crypto";
import { constants, existsSync, mkdirSync, readdirSync, rmdirSync, writeFileSync } from "node:fs";
import { totalmem } from "node:os";
import { join } from "node:path";
import { PlatformError } from "../../../../contract/errors.ts";
import { ROOT } from "../../../../lib/root.ts";
import type { Mount } from "../../../workload.ts";
import { Serial } from "../../common/serial.ts";
import type { Spawner } from "../calls/spawner.ts";
import { AT_FDCWD, MNT_DETACH, O_CLOEXEC } from "../calls/syscalls.ts";
import { type MountEntry, readMountTable } from "../machine/mount-table.ts";
import { remoteMountSteps } from "./remote-mount-program.ts";

/** Longer than a server needs to start anew, so that programs do not notice. */
const WAIT_MS = 10_000;
const { O_DIRECTORY } = constants;
/**
 * Workloads decide how many files their kernel knows, and the process of the mount knows as many. One that has more ends
 * and is started again, in place of taking memory that no limit of a workload counts.
 */
const HEAP = "--max-old-space-size=512";
const PROGRAM = join(ROOT, "bin/drive-mount.js");

export interface RemoteDrivesOptions {
  /** Folder of the mounts. */
  dir: string;
  spawner: Pick<Spawner, "run">;
  /** Socket at which the server of this machine reaches the others; null where there are none. */
  socket: string | null;
  /** How long programs wait for a node that is away, before they get an error. Default WAIT_MS. */
  waitMs?: number;
  /** Default: as many as the machine has memory for. */
  mountsMax?: number;
  /** Mounts of all workloads. */
  mounts(): Mount[];
}

/** Memory of the process of a mount, which is no part of the workload's own: measured 27 MB. */
const MOUNT_BYTES = 32 * 2 ** 20;
const MOUNTS_MIN = 16;
/** An eighth of the machine's memory is for mounts. */
const mountsMax = (): number => Math.max(MOUNTS_MIN, Math.floor(totalmem() / 8 / MOUNT_BYTES));

type RemoteSource = { drive: string; path?: string; node: string };

export class RemoteDrives {
  readonly #options: RemoteDrivesOptions;
  readonly #serial = new Serial();
  /** Mounts that are about to be used by a workload, and how often. */
  readonly #held = new Map<string, number>();

  constructor(options: RemoteDrivesOptions) {
    this.#options = options;
  }

  /** Where the drive is mounted. It stays at least until it is released. */
  async take(source: RemoteSource, readOnly: boolean): Promise<{ path: string; release: () => Promise<void> }> {
    const name = nameOf(source, readOnly);
    this.#held.set(name, (this.#held.get(name) ?? 0) + 1);
    const release = async (): Promise<void> => {
      const left = (this.#held.get(name) ?? 1) - 1;
      if (left > 0) this.#held.set(name, left);
      else this.#held.delete(name);
      await this.sweep();
    };
    try {
      await this.#serial.run(name, () => this.#mounted(name, source, readOnly));
      return { path: this.#at(name), release };
    } catch (error) {
      await release();
      throw error;
    }
  }

  /** The mount point, whether it is mounted or not. */
  pathOf(source: RemoteSource, readOnly: boolean): string {
    return this.#at(nameOf(source, readOnly));
  }

  /** False when nothing serves the mount any more: programs get ENOTCONN from it. */
  async isAlive(source: RemoteSource, readOnly: boolean): Promise<boolean> {
    return (await this.#stateOf(nameOf(source, readOnly))) === "mounted";
  }

  /** Ends mounts that no workload has. */
  async sweep(): Promise<void> {
    for (const name of this.#names())
      await this.#serial.run(name, async () => {
        // Looked up now: a workload may have got the mount while this sweep waited for its turn.
        if (!this.#held.has(name) && !this.#isUsed(name)) await this.#end(name);
      });
  }

  #isUsed(name: string): boolean {
    return this.#options
      .mounts()
      .some(
        ({ source, readOnly = false }) =>
          "drive" in source && source.node !== undefined && nameOf({ ...source, node: source.node }, readOnly) === name,
      );
  }

  async #mounted(name: string, { node, drive, path = "/" }: RemoteSource, readOnly: boolean): Promise<void> {
    const { socket, spawner, waitMs = WAIT_MS } = this.#options;
    if (socket === null)
      throw new PlatformError("unprocessable", "The drive is on another node, and this server has none.");
    const state = await this.#stateOf(name);
    if (state === "mounted") return;
    if (state === "dead") await this.#end(name);
    this.#requireRoom(drive);
    const at = this.#at(name);
    mkdirSync(at, { recursive: true, mode: 0o700 });
    const mount = JSON.stringify({ node, drive, path, readOnly });
    await spawner.run("Mounting a drive of another node", (program) =>
      remoteMountSteps(program, { at, argv: [process.execPath, HEAP, PROGRAM, socket, mount, String(waitMs)] }),
    );
    try {
      // The kernel lets workloads have the mount once its server has said what it can do.
      await this.#look(name);
      readAhead(this.#mountPoint(name));
    } catch (error) {
      await this.#end(name);
      throw new PlatformError(
        "unavailable",
        `The drive is on another node, which does not answer (${reasonOf(error)}).`,
        { cause: error },
      );
    }
  }

  /** A drive with many mounts leaves room for those of others. */
  #requireRoom(drive: string): void {
    const names = this.#names();
    const own = names.filter((name) => name.startsWith(`${drive}-`)).length;
    if (own >= (this.#options.mountsMax ?? mountsMax()) - names.length)
      throw new PlatformError("unavailable", "This node has too many mounts of drives of other nodes.");
  }

  async #stateOf(name: string): Promise<"none" | "mounted" | "dead"> {
    if (!this.#mountPoint(name)) return "none";
    // Any other error is that of a server which lives, and whose drive cannot be reached now.
    return this.#look(name).then(
      () => "mounted",
      (error: unknown) => (reasonOf(error).endsWith("ENOTCONN") ? "dead" : "mounted"),
    );
  }

  /**
   * In a process of its own. A node that is away lets whoever looks wait, and this server has a few threads for files:
   * some looks of its own would stop everything that it does with files.
   */
  #look(name: string): Promise<void> {
    return this.#options.spawner.run("Looking at a drive of another node", (program) =>
      program.step("openat", [AT_FDCWD, this.#at(name), O_DIRECTORY | O_CLOEXEC, 0], "open the drive"),
    );
  }

  /** The process ends when the last workload lets go of the mount. */
  async #end(name: string): Promise<void> {
    const at = this.#at(name);
    while (this.#mountPoint(name))
      await this.#options.spawner.run("Unmounting a drive of another node", (program) =>
        program.step("umount2", [at, MNT_DETACH], "unmount the drive"),
      );
    // Another sweep may have been here before.
    if (existsSync(at)) rmdirSync(at);
  }

  #mountPoint(name: string): MountEntry | undefined {
    const path = this.#at(name);
    return readMountTable("self").findLast(({ at }) => at === path);
  }

  #names(): string[] {
    try {
      return readdirSync(this.#options.dir);
    } catch {
      return [];
    }
  }

  #at(name: string): string {
    return join(this.#options.dir, name);
  }
}

/** The same part of the same drive has the same name in every life of the server. */
function nameOf({ node, drive, path = "/" }: RemoteSource, readOnly: boolean): string {
  const digest = createHash("sha256")
    .update(JSON.stringify([node, drive, path, readOnly]))
    .digest("hex");
  return `${drive}-${digest.slice(0, 16)}`;
}

/** KB that the kernel reads ahead: as much as one question may ask for. Its default is an eighth of that. */
const READ_AHEAD_KB = 1024;

function readAhead(mount: MountEntry | undefined): void {
  try {
    writeFileSync(`/sys/class/bdi/${mount?.device}/read_ahead_kb`, String(READ_AHEAD_KB));
  } catch {
    // Reading is slower, and nothing else.
  }
}

/** The error that the spawner tells of, such as "open the drive: EIO". */
const reasonOf = (error: unknown): string =>
  String((error as { detail?: { reason?: unknown } }).detail?.reason ?? error);
