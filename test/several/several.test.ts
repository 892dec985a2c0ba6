/** Two servers on one PostgreSQL lose nothing and double nothing, whichever of them is asked, killed or cut off. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { privatePostgresMissing } from "../postgres.ts";
import { machineSkip } from "../sandbox-suite.ts";
import { agrees } from "./agreement.ts";
import { type Cluster, startCluster } from "./cluster.ts";
import { counting } from "./counting.ts";
import { sharedDrives } from "./drives.ts";
import { sharedImages } from "./images.ts";
import { losing } from "./losing.ts";
import { placing } from "./placing.ts";
import { sharing } from "./sharing.ts";
import { throughAny } from "./through-any.ts";
import { makeSandbox, mark, markOf } from "./use.ts";

describe("two servers", { skip: machineSkip || privatePostgresMissing() }, () => {
  let cluster: Cluster<"a" | "b">;
  before(async () => {
    cluster = await startCluster(["a", "b"]);
  });
  after(() => cluster.stop());
  const get = (): Cluster<"a" | "b"> => cluster;

  test("what runs at one server goes on when another one starts", async () => {
    const { a, b } = cluster.members;
    await b.kill("SIGTERM");
    const { metadata } = await makeSandbox(a, "box");
    await mark(a, "box");
    await b.start();
    const other = await makeSandbox(b, "other"); // by then the machine and the loop of the other server work
    await mark(b, "other");
    assert.equal(await markOf(a, "box"), "box alive");
    assert.equal(await markOf(b, "box"), "box alive");
    assert.deepEqual(
      cluster.all.map((member) => member.running().map(({ uid }) => uid)),
      [[metadata.uid], [other.metadata.uid]],
    );
    await agrees(cluster);
  });

  sharing(get);
  sharedImages(get);
  sharedDrives(get);
  throughAny(get);
  placing(get);
  counting(get, 6); // hundred.long.ts has a hundred
  losing(get);
});
