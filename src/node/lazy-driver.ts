/**
 * A driver that opens in the background: the server answers at once, and whoever needs a workload waits until the
 * machine is ready for it. What kept it from opening is told to every caller.
 */
import { CAPABILITY_NAMES, type CapabilityName } from "./capabilities/capabilities.ts";
import type { Driver } from "./driver.ts";
import { forwardingDriver } from "./forwarding-driver.ts";

export interface LazyDriver extends Driver {
  /** Starts opening, also after an opening that failed; rejects with the reason when this one fails. */
  opened(): Promise<void>;
  /** The capabilities of an open driver; none before. */
  readonly capabilities: readonly CapabilityName[];
  readonly isOpen: boolean;
  /** False from a failed opening until one that succeeds. */
  readonly runs: boolean;
}

export interface LazyDriverOptions extends Pick<Driver, "name" | "node"> {
  open(): Promise<Driver>;
}

export function lazyDriver({ name, node, open }: LazyDriverOptions): LazyDriver {
  let opening: Promise<Driver> | null = null;
  let running: Driver | null = null;
  let capabilities: CapabilityName[] = [];
  let failed = false;
  const start = (): Promise<Driver> => {
    opening = open().then(async (opened) => {
      capabilities = await capabilitiesOf(opened);
      running = opened;
      failed = false;
      return opened;
    });
    opening.catch(() => {
      failed = true;
    });
    return opening;
  };
  const driver = (): Promise<Driver> => opening ?? start();
  return {
    ...forwardingDriver({ name, node, target: driver }),
    /** An open driver's own name: a server may be given another driver than the list would open. */
    get name() {
      return running?.name ?? name;
    },
    get isOpen() {
      return running !== null;
    },
    get runs() {
      return !failed;
    },
    get capabilities() {
      return capabilities;
    },
    async opened() {
      await (failed ? start() : driver());
    },
    async stop(workloads) {
      if (running) await running.stop(workloads);
      // Nobody waits for one that is still opening; it is stopped as soon as it has.
      else opening?.then((late) => late.stop(workloads)).catch(() => {});
    },
  };
}

async function capabilitiesOf(driver: Driver): Promise<CapabilityName[]> {
  const there = await Promise.all(
    CAPABILITY_NAMES.map(async (name) => ((await driver.capability(name)) === null ? [] : [name])),
  );
  return there.flat();
}
