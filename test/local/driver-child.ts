/** A server that creates workloads until it is killed; run by the driver's tests. */
import { openLocalDriver } from "../../src/node/drivers/local/local-driver.ts";
import { sandboxdBinary } from "../sandboxd-binary.ts";
import { run } from "./run.ts";

const dataDir = process.argv[2] ?? "";
const driver = await openLocalDriver({
  dataDir,
  brand: "berth",
  sandboxd: await sandboxdBinary(),
  node: "here",
  poolSize: 2,
});
for (let number = 0; ; number++) {
  const limits = { memoryMb: 256, cpus: 1 };
  const image = "berth/base-image:latest";
  const made = await driver.create({ uid: `w${number}`, name: "box", image, env: {}, limits, network: "closed" });
  await run(made, "echo still here > /kept");
  console.log(JSON.stringify(made));
}
