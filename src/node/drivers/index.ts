/**
 * The drivers that this platform has, by name. A new driver is a folder here that passes the conformance suite
 * (`../conformance/`), and one line in this list. A driver's code is loaded when that driver is opened.
 */
import type { Socket } from "node:net";
import { join } from "node:path";
import type { Driver } from "../driver.ts";
import type { EgressOptions } from "../egress-proxy.ts";

/** What the platform tells a driver of any name. */
export interface DriverOptions {
  /** Folder of this driver alone. */
  dataDir: string;
  /** The word that stands before the slash in image names. */
  brand: string;
  /** A Node executable to put into the base image. */
  nodeBinary?: string;
  /** Name of this machine; default: its host name. */
  node?: string;
  /** Prepared workloads per kind of workload in use; default 0. */
  poolSize?: number;
  /** Run workloads as plain processes where the machine can give no isolation. */
  allowUnisolated?: boolean;
  /** A connection that a workload made to the platform. The default hangs up. */
  onPlatform?: (uid: string, socket: Socket) => void;
  /** Rules and counting of what goes out. */
  egress?: EgressOptions;
  /** Trouble in the background that no caller hears of. */
  onWarning?: (message: string, fields: Record<string, unknown>) => void;
}

type OpenDriver = (options: DriverOptions) => Promise<Driver>;

export const DRIVERS = {
  local: async (options) => {
    const [{ openLocalDriver }, { cachedSandboxd }] = await Promise.all([
      import("./local/local-driver.ts"),
      import("../sandboxd-build.ts"),
    ]);
    return openLocalDriver({ ...options, sandboxd: await cachedSandboxd(join(options.dataDir, "bin")) });
  },
} satisfies Record<string, OpenDriver>;

export type DriverName = keyof typeof DRIVERS;

export const DRIVER_DEFAULT: DriverName = "local";
