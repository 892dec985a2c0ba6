/** A server that starts commands without a daemon until it is killed; run by the tests of such commands. */
import { openLocalDriver } from "../../src/node/drivers/local/local-driver.ts";
import { sandboxdBinary } from "../sandboxd-binary.ts";

const dataDir = process.argv[2] ?? "";
const driver = await openLocalDriver({ dataDir, brand: "berth", sandboxd: await sandboxdBinary(), node: "here" });
for (let number = 0; ; number++) {
  const box = { uid: `t${number}`, name: "box", image: "berth/base-image:latest", env: {}, network: "closed" } as const;
  const log = { workspace: "main", plural: "jobs", name: "box", uid: "job", source: "run" } as const;
  const exec = { argv: ["sh", "-c", "echo begun; (setsid sleep 500 &); exec sleep 600"], alone: true };
  await driver.create({ ...box, log, exec, limits: { memoryMb: 64, cpus: 1 } });
  console.log(box.uid);
}
