/** Sleep on disk, and copies with memory, of workloads in gVisor. `server.test.ts` has its short form. */
import { after, before, suite, test } from "node:test";
import { type Harness, newUid } from "../../src/node/conformance/harness.ts";
import { hibernation } from "../../src/node/conformance/hibernation.ts";
import { memorySnapshots } from "../../src/node/conformance/memory-snapshots.ts";
import { localCandidate, localDriverMissing } from "../local/machine.ts";
import { LONG } from "../long.ts";
import { RUNSC_MISSING, testRunsc } from "./binary.ts";

const runsc = localDriverMissing ? null : testRunsc();
if (runsc === null || !LONG)
  test("sleep on disk", { skip: LONG ? RUNSC_MISSING : "runs with npm run test:long" }, () => {});
else
  suite("sleep on disk", { timeout: 540_000 }, () => {
    let harness: Harness;
    before(async () => {
      harness = await localCandidate({ runsc, outbound: "proxy", poolSize: 0 }).open();
    });
    after(() => harness.dispose());
    const limits = { memoryMb: 256, cpus: 1 };
    for (const part of [hibernation, memorySnapshots])
      part(
        () => harness,
        (more = {}) => ({
          ...{ uid: newUid(), name: "box", image: harness.image, env: {}, limits, network: "closed" },
          ...more,
        }),
      );
  });
