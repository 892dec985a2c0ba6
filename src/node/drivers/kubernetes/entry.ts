/** The Kubernetes driver, as the list of drivers opens it. */
import { PlatformError } from "../../../contract/errors.ts";
import type { Driver, Probe } from "../../driver.ts";
import type { DriverOptions, OwnedWorkload } from "../options.ts";
import { openClient, openKubernetesDriver, probeOf } from "./kubernetes-driver.ts";
import { podSchema } from "./objects/answers.ts";
import { selectorOf } from "./objects/names.ts";
import { INSTANCE_DEFAULT } from "./settings.ts";
import { hasEnded, isHalted, isRunning } from "./workload/observed.ts";
import { recordIn } from "./workload/record.ts";

export const open = ({ kubernetes, ...options }: DriverOptions): Promise<Driver> =>
  openKubernetesDriver({ ...options, ...kubernetes });

/** Asks the API server for nothing but an answer. */
export async function probe({ kubernetes = {} }: DriverOptions): Promise<Probe> {
  await pods(kubernetes);
  return probeOf(kubernetes);
}

/** None where the API server does not answer: nothing can be ended then either. */
export const owned = async ({ kubernetes = {} }: DriverOptions): Promise<OwnedWorkload[]> => {
  try {
    return (await pods(kubernetes)).flatMap((pod) => {
      const record = recordIn(pod);
      if (!record || (hasEnded(pod) && !record.command)) return [];
      const { name, log, command } = record;
      const runs = isRunning(pod) && !isHalted(pod);
      return [{ name, ...(log ? { log } : {}), runs, keepsFiles: !command }];
    });
  } catch (error) {
    if (error instanceof PlatformError && error.code === "unavailable") return [];
    throw error;
  }
};

async function pods(settings: NonNullable<DriverOptions["kubernetes"]>) {
  const { client, namespace } = openClient(settings);
  try {
    const query = { labelSelector: selectorOf(settings.instance ?? INSTANCE_DEFAULT, "workload") };
    return (await client.list(podSchema, `/api/v1/namespaces/${namespace}/pods`, { query })).items;
  } finally {
    await client.close();
  }
}
