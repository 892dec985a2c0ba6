import { after, before, suite, test } from "node:test";
import { driverConformance } from "../../src/node/conformance/conformance.ts";
import { type Bench, dockerCandidate, dockerMissing, openBench } from "./machine.ts";

if (dockerMissing) test("docker driver", { skip: dockerMissing }, () => {});
else
  suite("docker", () => {
    let bench: Bench;
    before(async () => {
      bench = await openBench();
    });
    after(() => bench.stop());
    driverConformance(
      "docker",
      dockerCandidate(() => bench),
    );
  });
