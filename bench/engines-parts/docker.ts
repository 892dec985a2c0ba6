/** The Docker driver, and `docker run` with the same image on the same engine. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { debianEnv } from "../../test/debian-packages.ts";
import { provideDocker } from "../../test/docker/binaries.ts";
import { type Findings, measureCommands, measureDriver } from "./start.ts";

export const DOCKER_RUN = "docker run";

export async function measureDocker(): Promise<Findings> {
  process.env.BERTH_TEST_DOCKER = provideDocker(["docker"]);
  // The module looks for the engine when it is loaded.
  const { DockerMachine, dockerMissing, dockerRoot, openBench } = await import("../../test/docker/machine.ts");
  if (dockerMissing !== null || dockerRoot === null)
    return [{ name: "docker", reason: dockerMissing ?? "there is no engine" }];
  const bench = await openBench();
  const machine = new DockerMachine(bench);
  try {
    const driver = await machine.open();
    const measured = await measureDriver({ name: "docker", against: DOCKER_RUN, driver });
    const env = { ...debianEnv(dockerRoot), DOCKER_HOST: bench.engine.host };
    const docker = async (...args: string[]): Promise<string> =>
      (await promisify(execFile)("docker", args, { env })).stdout.trim();
    const [image = ""] = (await docker("images", "--quiet")).split("\n");
    const alone = ["--network", "none"];
    const there = await docker("run", "--detach", ...alone, "--entrypoint", "sleep", image, "100000");
    const reference = await measureCommands({
      name: DOCKER_RUN,
      create: () => docker("run", "--rm", ...alone, "--entrypoint", "true", image),
      exec: () => docker("exec", there, "true"),
    });
    await docker("rm", "--force", there);
    return [measured, reference];
  } finally {
    await machine.dispose();
    await bench.stop();
  }
}
