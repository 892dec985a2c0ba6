/** All suites on one cluster. `run.ts` starts this file in namespaces of its own. */
import { after, before, suite } from "node:test";
import { basics } from "./suites/basics.ts";
import { client } from "./suites/client.ts";
import { importBerthImage } from "./world/berth-image.ts";
import { type Cluster, startCluster } from "./world/cluster.ts";

suite("a real cluster", () => {
  let cluster: Cluster;
  before(async () => {
    const dir = process.env.BERTH_CLUSTER_DIR;
    if (!dir) throw new Error("Run `npm run test:cluster`: this file needs namespaces of its own.");
    cluster = await startCluster(dir);
    await importBerthImage(dir);
  });
  after(() => cluster?.stop());
  const get = (): Cluster => cluster;
  basics(get);
  client(get);
});
