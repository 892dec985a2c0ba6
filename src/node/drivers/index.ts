/**
 * The drivers that this platform has, by name. A new driver is a folder here that passes the conformance suite
 * (`../conformance/`), and one line in this list. A driver's code is loaded when that driver is asked for something.
 */
import type { Driver, Probe } from "../driver.ts";
import type { DriverOptions, OwnedWorkload } from "./options.ts";

interface Entry {
  open(options: DriverOptions): Promise<Driver>;
  /** The isolation that workloads would have, also beside a running server. */
  probe(options: DriverOptions): Promise<Probe>;
  /** All workloads that have an owner, without opening the driver. */
  owned(options: DriverOptions): Promise<OwnedWorkload[]>;
}

export const DRIVERS = {
  local: () => import("./local/entry.ts"),
  docker: () => import("./docker/entry.ts"),
  kubernetes: () => import("./kubernetes/entry.ts"),
} satisfies Record<string, () => Promise<Entry>>;

export type DriverName = keyof typeof DRIVERS;

/** Drivers whose workloads belong to no machine: any server that has the driver acts on any workload. */
export const SHARED_DRIVERS: readonly DriverName[] = ["kubernetes"];
