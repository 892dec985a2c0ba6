/** Two servers on one PostgreSQL whose workloads are containers of one Docker Engine: each server has its own. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe } from "node:test";
import { ownerOf } from "../../src/node/drivers/docker/docker-driver.ts";
import { DockerClient } from "../../src/node/drivers/docker/engine/docker-client.ts";
import { parseDockerHost } from "../../src/node/drivers/docker/engine/docker-host.ts";
import { importBase } from "../../src/node/drivers/docker/images/base-image.ts";
import { openSkeleton } from "../../src/node/drivers/local/images/base-image.ts";
import { type Bench, dockerMissing, openBench } from "../docker/machine.ts";
import { privatePostgresMissing } from "../postgres.ts";
import { type Cluster, startCluster } from "./cluster.ts";
import { counting } from "./counting.ts";
import { sharing } from "./sharing.ts";
import type { Running } from "./what-runs.ts";

const BRAND = "test";

describe("two servers with containers", { skip: dockerMissing ?? privatePostgresMissing() }, () => {
  const dir = mkdtempSync(join(tmpdir(), "berth-several-docker-"));
  let bench: Bench;
  let cluster: Cluster<"a" | "b">;
  before(async () => {
    bench = await openBench(realpathSync(process.execPath));
    const { host } = bench.engine;
    const client = new DockerClient(parseDockerHost(host));
    await client.open();
    const skeleton = openSkeleton(join(dir, "skeleton"), "");
    const image = await importBase({ client, owner: "test-00000000", brand: BRAND, base: bench.base, skeleton });
    await client.close();
    cluster = await startCluster(["a", "b"], {
      running: (dataDir) => runningIn(host, ownerOf(BRAND, join(dataDir, "docker"))),
      env: async () => ({
        ...{ BERTH_DRIVER: "docker", DOCKER_HOST: host, BERTH_DOCKER_IMAGE: image, BERTH_BRAND: BRAND },
      }),
    });
  });
  after(async () => {
    await cluster?.stop();
    await bench?.stop();
    rmSync(dir, { recursive: true, force: true });
  });

  sharing(() => cluster);
  counting(() => cluster, 12, "all");
});

interface Container {
  Id: string;
  Labels: Record<string, string>;
}

/** Containers of workloads of one server that run. */
function runningIn(host: string, owner: string): Running[] {
  const socket = host.replace("unix://", "");
  const text = execFileSync("curl", ["--silent", "--unix-socket", socket, "http://docker/containers/json"]).toString();
  return (JSON.parse(text) as Container[]).flatMap(({ Id, Labels }) => {
    if (Labels["berth.role"] !== "workload" || Labels["berth.node"] !== owner) return [];
    const { uid, name } = JSON.parse(Labels["berth.record"] ?? "{}") as { uid: string; name: string };
    return [{ uid, name, pid: 0, startTime: Id }];
  });
}
