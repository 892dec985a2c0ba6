/** Drives that are mounted in a sandbox while it runs. */
import type { Berth } from "../berth.ts";
import { segment } from "../core/address.ts";
import type { CallOptions } from "../core/call.ts";

export interface Mount {
  driveName: string;
  mountPath: string;
  drivePath?: string;
  readOnly?: boolean;
}

export class SandboxDrives {
  readonly #berth: Berth;
  readonly #address: string;

  constructor(berth: Berth, address: string) {
    this.#berth = berth;
    this.#address = address;
  }

  /** Mounts a drive, or the folder `drivePath` of it. */
  async mount(
    drive: string | { name: string },
    mountPath: string,
    options: CallOptions & { drivePath?: string; readOnly?: boolean } = {},
  ): Promise<void> {
    const { drivePath, readOnly, ...rest } = options;
    const driveName = typeof drive === "string" ? drive : drive.name;
    const body = { driveName, mountPath, ...(drivePath ? { drivePath } : {}), ...(readOnly ? { readOnly } : {}) };
    await this.#berth.askWorkload(this.#address, { ...rest, method: "POST", path: "/drives/mount", body });
  }

  async unmount(mountPath: string, options: CallOptions = {}): Promise<void> {
    const path = `/drives/mount/${segment("mountPath", mountPath.replace(/^\/+/, ""))}`;
    await this.#berth.askWorkload(this.#address, { ...options, method: "DELETE", path });
  }

  async list(options: CallOptions = {}): Promise<Mount[]> {
    const answer = await this.#berth.askWorkload(this.#address, { ...options, path: "/drives/mount" });
    return (answer as { mounts?: Mount[] }).mounts ?? [];
  }
}
