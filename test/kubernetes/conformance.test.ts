/** What every driver must do, with pods of a cluster of the test's own. */
import { after, before, describe } from "node:test";
import { driverConformance } from "../../src/node/conformance/conformance.ts";
import { type Cluster, kubernetesCandidate, kubernetesMissing, startCluster } from "./cluster.ts";

describe("kubernetes", { skip: kubernetesMissing ?? false }, () => {
  let cluster: Cluster;
  before(async () => {
    cluster = await startCluster();
  });
  after(() => cluster?.stop());
  driverConformance(
    "kubernetes",
    kubernetesCandidate(() => cluster),
  );
});
