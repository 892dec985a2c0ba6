/** Three servers on one PostgreSQL with a hundred sandboxes. */
import { after, before, describe } from "node:test";
import { privatePostgresMissing } from "../postgres.ts";
import { machineSkip } from "../sandbox-suite.ts";
import { type Cluster, startCluster } from "./cluster.ts";
import { counting } from "./counting.ts";

describe("three servers", { skip: machineSkip || privatePostgresMissing() }, () => {
  let cluster: Cluster<string>;
  before(async () => {
    cluster = await startCluster(["a", "b", "c"]);
  });
  after(() => cluster.stop());
  counting(() => cluster, 100, "all");
});
