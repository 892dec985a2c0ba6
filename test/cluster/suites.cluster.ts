/** All suites on one cluster. `run.ts` starts this file in namespaces of its own. */
import { after, before, suite } from "node:test";
import { basics } from "./suites/basics.ts";
import { chaos } from "./suites/chaos.ts";
import { client } from "./suites/client.ts";
import { conformance } from "./suites/conformance.ts";
import { images } from "./suites/images.ts";
import { type Installation, installBerth } from "./suites/installation.ts";
import { platform } from "./suites/platform.ts";
import { importAgentImage } from "./world/agent-image.ts";
import { importBerthImage } from "./world/berth-image.ts";
import { type Cluster, startCluster } from "./world/cluster.ts";

suite("a real cluster", () => {
  let cluster: Cluster;
  before(async () => {
    const { BERTH_CLUSTER_DIR: dir, BERTH_CLUSTER_CGROUP: cgroup } = process.env;
    if (!dir || !cgroup) throw new Error("Run `npm run test:cluster`: this file needs namespaces of its own.");
    cluster = await startCluster(dir, cgroup);
    await importBerthImage(dir);
  });
  after(() => cluster?.stop());
  const get = (): Cluster => cluster;
  basics(get);
  client(get);
  conformance(get);
  suite("with Berth installed", () => {
    let installation: Installation;
    before(async () => {
      await importAgentImage(cluster.dir);
      installation = await installBerth(cluster);
    });
    after(() => installation?.stop());
    platform(get, () => installation);
    images(get, () => installation);
    chaos(get, () => installation);
  });
});
