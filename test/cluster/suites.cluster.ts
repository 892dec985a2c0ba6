/** All suites on one cluster. `run.ts` starts this file in namespaces of its own. */
import { after, before, suite } from "node:test";
import { basics } from "./suites/basics.ts";
import { type Cluster, startCluster } from "./world/cluster.ts";

suite("a real cluster", () => {
  let cluster: Cluster;
  before(async () => {
    const { BERTH_CLUSTER_DIR: dir, BERTH_CLUSTER_CGROUP: cgroup } = process.env;
    if (!dir || !cgroup) throw new Error("Run `npm run test:cluster`: this file needs namespaces of its own.");
    cluster = await startCluster({ dir, cgroup });
  });
  after(() => cluster?.stop());
  const get = (): Cluster => cluster;
  basics(get);
});
