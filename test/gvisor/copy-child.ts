/** A server that is killed while it copies the memory of a workload: `copy-child.ts DATA_DIR RUNSC`. */
import { need } from "../../src/node/capabilities/need.ts";
import { LocalMachine } from "../local/machine.ts";

const [dataDir = "", runsc = ""] = process.argv.slice(2);
const driver = await new LocalMachine(dataDir).open({ runsc, outbound: "proxy" });
const limits = { memoryMb: 256, cpus: 1 };
const image = "berth/base-image:latest";
await driver.create({ uid: "box", name: "box", image, env: {}, limits, network: "closed", isolation: "vm-like" });
await (await need(driver, "memorySnapshots")).take("box", "cut");
