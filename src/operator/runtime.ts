/** The driver of the configuration, for commands that work beside a server or without one. */
import { type Config, dockerOf, driverDir } from "../config.ts";
import { kubernetesOf } from "../lib/schemas/kube-settings.ts";
import type { Driver, Probe } from "../node/driver.ts";
import { DRIVERS } from "../node/drivers/index.ts";
import type { DriverOptions, OwnedWorkload } from "../node/drivers/options.ts";

const optionsOf = (config: Config): DriverOptions => ({
  dataDir: driverDir(config),
  brand: config.brand,
  allowUnisolated: true,
  isolation: config.isolation,
  runsc: config.runsc,
  docker: dockerOf(config),
  kubernetes: kubernetesOf(config),
});

export const openRuntime = async (config: Config): Promise<Driver> =>
  (await DRIVERS[config.driver]()).open(optionsOf(config));

/** The isolation that workloads would have here. */
export const probeIsolation = async (config: Config): Promise<Probe> =>
  (await DRIVERS[config.driver]()).probe(optionsOf(config));

export const ownedWorkloads = async (config: Config): Promise<OwnedWorkload[]> =>
  (await DRIVERS[config.driver]()).owned(optionsOf(config));
