/** The third phase: the machine of this server, opened in the background, and what is metered on it. */
import { join } from "node:path";
import type { Node } from "../kinds/port.ts";
import { Activity } from "../lib/activity.ts";
import { startMetering } from "../metering/metering.ts";
import { addUsageCounters } from "../metering/usage-counters.ts";
import { openBlobStore } from "../node/blobs/blob-store.ts";
import type { Driver, OnStop } from "../node/driver.ts";
import { DRIVER_DEFAULT } from "../node/drivers/index.ts";
import { type LazyDriver, lazyDriver } from "../node/lazy-driver.ts";
import { openLogRoom } from "../node/logs/log-room.ts";
import { createTraffic } from "../node/traffic.ts";
import type { Foundation } from "./foundation.ts";
import { createDoors, openMachine, runningSince, storedMb } from "./machine.ts";
import { logBounds, placeOf } from "./settings.ts";
import type { Start } from "./start.ts";

export interface StartedNode {
  node: Node;
  driver: LazyDriver;
  doors: ReturnType<typeof createDoors>;
  /** Where workloads of this server are; two servers on one machine have a place each. */
  place: string;
  /** Says what becomes of running workloads when the server stops; until then it is as configured. */
  onStop(workloads: OnStop): void;
}

export async function startNode(
  { config, clock, log, settings, prices, holder, stack }: Start,
  { disk, store, registry }: Foundation,
  openDriver?: () => Promise<Driver>,
): Promise<StartedNode> {
  const activity = new Activity(clock);
  const doors = createDoors(log);
  const logs = stack.add(
    openLogRoom({
      dir: join(config.data, "logs"),
      clock,
      bounds: logBounds(config),
      lastUsedMs: (uid) => activity.lastOf(uid),
      onError: (error) => log.warn({ err: error }, "the output of workloads could not be kept"),
    }),
  );
  const traffic = createTraffic(() => driver);
  const machine = openDriver ?? (() => openMachine({ config, settings, doors, traffic, log }));
  const driver = lazyDriver({
    name: DRIVER_DEFAULT,
    node: settings.nodeId,
    open: async () => logs.listenTo(await machine()),
  });
  let workloadsOnStop: OnStop = config.on_stop;
  stack.defer(() => driver.stop(workloadsOnStop));
  const place = placeOf(config, settings);
  const { meter, egress } = stack.add(
    await startMetering({
      store,
      book: prices,
      clock,
      monotonicMs: () => performance.now(),
      node: place,
      holder,
      runningSince: (uid) => runningSince(driver, uid),
      storedMb: (stored, owner) => storedMb({ store, driver, settings }, stored, owner),
      traffic,
      onError: (error) => log.warn({ err: error }, "usage could not be recorded yet, trying again"),
    }),
  );
  addUsageCounters(registry, store.usage);
  return {
    ...{ driver, doors, place },
    node: { ...{ driver, disk, logs, activity, meter, egress }, blobs: openBlobStore(join(config.data, "blobs")) },
    onStop: (workloads) => {
      workloadsOnStop = workloads;
    },
  };
}
