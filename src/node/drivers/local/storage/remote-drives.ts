/**
 * Drives of other nodes, mounted on this machine: one mount for each part of a drive and mode that workloads here use. A
 * mount outlives the server, as workloads do. It goes when no workload has it.
 */
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, rmdirSync, type Stats, writeFileSync } from "node:fs";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { PlatformError } from "../../../../contract/errors.ts";
import { ROOT } from "../../../../lib/root.ts";
import type { Mount } from "../../../workload.ts";
import { Serial } from "../../common/serial.ts";
import type { Spawner } from "../calls/spawner.ts";
import { MNT_DETACH } from "../calls/syscalls.ts";
import { readMountTable } from "../machine/mount-table.ts";
import { remoteMountSteps } from "./remote-mount-program.ts";

/** Longer than a server needs to start anew, so that programs do not notice. */
const WAIT_MS = 10_000;
const PROGRAM = join(ROOT, "bin/drive-mount.js");

export interface RemoteDrivesOptions {
  /** Folder of the mounts. */
  dir: string;
  spawner: Pick<Spawner, "run">;
  /** Socket at which the server of this machine reaches the others; null where there are none. */
  socket: string | null;
  /** How long programs wait for a node that is away, before they get an error. Default WAIT_MS. */
  waitMs?: number;
  /** Mounts of all workloads. */
  mounts(): Mount[];
}

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
    const used = new Set(
      this.#options.mounts().flatMap(({ source, readOnly = false }) => {
        return "drive" in source && source.node !== undefined
          ? [nameOf({ ...source, node: source.node }, readOnly)]
          : [];
      }),
    );
    for (const name of this.#names()) {
      if (used.has(name)) continue;
      await this.#serial.run(name, async () => {
        if (!this.#held.has(name)) await this.#end(name);
      });
    }
  }

  async #mounted(name: string, { node, drive, path = "/" }: RemoteSource, readOnly: boolean): Promise<void> {
    const { socket, spawner, waitMs = WAIT_MS } = this.#options;
    if (socket === null)
      throw new PlatformError("unprocessable", "The drive is on another node, and this server has none.");
    const state = await this.#stateOf(name);
    if (state === "mounted") return;
    if (state === "dead") await this.#end(name);
    const at = this.#at(name);
    mkdirSync(at, { recursive: true, mode: 0o700 });
    const mount = JSON.stringify({ node, drive, path, readOnly });
    await spawner.run("Mounting a drive of another node", (program) =>
      remoteMountSteps(program, { at, argv: [process.execPath, PROGRAM, socket, mount, String(waitMs)] }),
    );
    try {
      // The kernel lets workloads have the mount once its server has said what it can do.
      readAhead(await stat(at));
    } catch (error) {
      await this.#end(name);
      throw new PlatformError(
        "unavailable",
        `The drive is on another node, which does not answer (${codeOf(error)}).`,
        {
          cause: error,
        },
      );
    }
  }

  async #stateOf(name: string): Promise<"none" | "mounted" | "dead"> {
    if (!this.#isMountPoint(name)) return "none";
    // Any other error is that of a server which lives, and whose drive cannot be reached now.
    return stat(this.#at(name)).then(
      () => "mounted",
      (error: unknown) => (codeOf(error) === "ENOTCONN" ? "dead" : "mounted"),
    );
  }

  /** The process ends when the last workload lets go of the mount. */
  async #end(name: string): Promise<void> {
    const at = this.#at(name);
    while (this.#isMountPoint(name))
      await this.#options.spawner.run("Unmounting a drive of another node", (program) =>
        program.step("umount2", [at, MNT_DETACH], "unmount the drive"),
      );
    rmdirSync(at);
  }

  #isMountPoint(name: string): boolean {
    const path = this.#at(name);
    return readMountTable("self").some(({ at }) => at === path);
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

function readAhead({ dev }: Stats): void {
  const [major, minor] = [(dev >> 8) & 0xfff, (dev & 0xff) | ((dev >> 12) & 0xfff00)];
  try {
    writeFileSync(`/sys/class/bdi/${major}:${minor}/read_ahead_kb`, String(READ_AHEAD_KB));
  } catch {
    // Reading is slower, and nothing else.
  }
}

const codeOf = (error: unknown): string => String((error as NodeJS.ErrnoException).code ?? error);
