/** The Docker driver, as the list of drivers opens it. */
import { join } from "node:path";
import { PlatformError } from "../../../contract/errors.ts";
import type { Driver, Probe } from "../../driver.ts";
import { cachedSandboxd } from "../../sandboxd-build.ts";
import type { DriverOptions, OwnedWorkload } from "../options.ts";
import { openDockerDriver, ownerOf } from "./docker-driver.ts";
import { containersSchema } from "./engine/answers.ts";
import { DockerClient } from "./engine/docker-client.ts";
import { DOCKER_HOST_DEFAULT, parseDockerHost } from "./engine/docker-host.ts";
import { examine } from "./engine/ground.ts";
import { ownedBy, recordIn } from "./workload/record.ts";

export const open = async ({ docker, ...options }: DriverOptions): Promise<Driver> =>
  openDockerDriver({ ...options, ...docker, sandboxd: await cachedSandboxd(join(options.dataDir, "bin")) });

/** What the engine says of itself; nothing is made there. */
export const probe = ({ docker }: DriverOptions): Promise<Probe> =>
  withClient(docker?.host, async (client) => (await examine(client, docker?.runtime)).probe);

/** None where the engine does not answer: nothing can be ended then either. */
export const owned = ({ docker, brand, dataDir }: DriverOptions): Promise<OwnedWorkload[]> =>
  withClient(docker?.host, async (client) => {
    const query = { all: true, filters: ownedBy(ownerOf(brand, dataDir), "workload") };
    const all = await client.json(containersSchema, "GET", "/containers/json", { query });
    return all.flatMap(({ Labels: labels, State: state }) => {
      const record = recordIn(labels);
      if (!record) return [];
      const { name, log, command } = record;
      return [{ name, ...(log ? { log } : {}), runs: RUNNING.has(state), keepsFiles: !command }];
    });
  }).catch((error: unknown) => {
    if (error instanceof PlatformError && error.code === "unavailable") return [];
    throw error;
  });

const RUNNING = new Set(["running", "paused", "restarting"]);

async function withClient<T>(host: string | undefined, work: (client: DockerClient) => Promise<T>): Promise<T> {
  const client = new DockerClient(parseDockerHost(host ?? DOCKER_HOST_DEFAULT));
  try {
    await client.open();
    return await work(client);
  } finally {
    await client.close();
  }
}
