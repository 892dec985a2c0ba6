/** The machine that workloads run on: how it is opened, the doors inside lead to, and what metering asks of it. */
import { join } from "node:path";
import type { Duplex } from "node:stream";
import type { Logger } from "pino";
import { type Config, dockerOf, driverDir } from "../config.ts";
import type { Edge } from "../http/edge.ts";
import { markWorkload } from "../http/peer-field.ts";
import { findDriverImage } from "../kinds/image/resolve.ts";
import type { Deps, Settings } from "../kinds/port.ts";
import { kubernetesOf } from "../lib/schemas/kube-settings.ts";
import type { Stored } from "../metering/resource-rates.ts";
import { need } from "../node/capabilities/need.ts";
import { type Driver, unheldLimits } from "../node/driver.ts";
import { DRIVERS } from "../node/drivers/index.ts";
import type { EgressOptions } from "../node/egress/egress-proxy.ts";
import type { CommandOf } from "../node/images/image-command.ts";
import type { createTraffic } from "../node/traffic.ts";
import type { Resource } from "../store/resources/resource.ts";

/** Connections from inside workloads; refused until the server listens. */
export function createDoors(log: Logger) {
  let edge: Edge | null = null;
  return {
    open(opened: Edge): void {
      edge = opened;
    },
    accept(door: "platform" | "egress", uid: string, socket: Duplex): void {
      if (door === "platform" && edge) {
        markWorkload(socket, uid);
        edge.accept(socket);
        return;
      }
      log.debug({ door, uid }, "a door that leads nowhere");
      socket.destroy();
    },
  };
}

/** Where mounts of drives of other nodes reach this server; a single server has none. */
export const driveSocketOf = ({ data, driver, database_url }: Config): string | undefined =>
  driver === "local" && database_url !== undefined ? join(data, "drives.sock") : undefined;

/** Roots of workloads leave this much of the disk to the server, also where new work is never refused. */
const KEEP_FREE_MIN_MB = 64;

interface MachineParts {
  config: Config;
  settings: Settings;
  doors: ReturnType<typeof createDoors>;
  traffic: ReturnType<typeof createTraffic>;
  /** Outbound rules of workloads, and who hears of refusals. */
  commandOf: CommandOf;
  /** Whether another server was heard of lately. */
  isLive(node: string): boolean;
  outbound: Pick<EgressOptions, "rules" | "onRefused" | "credentialOf" | "identityOf" | "neighbours">;
  log: Logger;
}

export async function openMachine(parts: MachineParts): Promise<Driver> {
  const { config, settings, doors, traffic, outbound, isLive, commandOf, log } = parts;
  const { open } = await DRIVERS[config.driver]();
  const driver = await open({
    dataDir: driverDir(config),
    brand: config.brand,
    nodeBinary: process.execPath,
    node: settings.nodeId,
    poolSize: config.pool_size,
    allowUnisolated: config.allow_unisolated,
    keepFreeMb: Math.max(config.disk_free_min, KEEP_FREE_MIN_MB),
    isolation: config.isolation,
    runsc: config.runsc,
    docker: dockerOf(config),
    kubernetes: kubernetesOf(config),
    onPlatform: (uid, socket) => doors.accept("platform", uid, socket),
    isLive,
    commandOf,
    driveSocket: driveSocketOf(config),
    ipv6: [...config.egress_pool, ...config.vpc_networks].some((address) => address.includes(":")),
    egress: { ...outbound, onBytes: (uid, sentBytes) => traffic.onBytes(uid, sentBytes) },
    onWarning: (message, fields) => log.warn(fields, message),
  });
  const probe = await driver.probe();
  const unheld = [
    ...unheldLimits(probe),
    ...(probe.volumes === "sized" ? [] : ["size of volumes"]),
    ...(probe.roots === "sized" ? [] : ["size of roots"]),
  ];
  if (unheld.length > 0)
    log.warn({ unheld, missing: probe.missing }, "some limits of workloads do not hold on this machine");
  return driver;
}

/** Null also when the machine cannot run workloads. */
export async function runningSince(driver: Driver, uid: string): Promise<number | null> {
  const observed = await driver.observe(uid).catch(() => null);
  return observed && observed.state !== "exited" ? Date.parse(observed.createdAt) : null;
}

export async function storedMb(
  { store, driver, settings }: Pick<Deps, "store" | "driver" | "settings">,
  stored: Stored,
  owner: Resource,
): Promise<number | null> {
  const isElsewhere = owner.node !== null && owner.node !== settings.nodeId;
  // The node that has the files writes their size into the record.
  if ("volumeCopy" in stored || (isElsewhere && !("image" in stored)))
    return typeof owner.state.storedMb === "number" ? owner.state.storedMb : null;
  const count = async (): Promise<number | null> => {
    if ("drive" in stored) return (await (await need(driver, "drives")).bytes(stored.drive)) ?? 0;
    if ("snapshot" in stored) {
      const snapshots = await (await need(driver, "snapshots")).list();
      return snapshots.find(({ id }) => id === stored.snapshot)?.sizeBytes ?? null;
    }
    const image = await findDriverImage(stored.image, owner, { store, driver, settings });
    return image === null ? null : (await need(driver, "images")).bytes(image);
  };
  const bytes = await count().catch(() => null);
  return bytes === null ? null : Math.ceil(bytes / 2 ** 20);
}
