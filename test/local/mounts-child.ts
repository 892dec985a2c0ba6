/** Run by driver.test.ts as a user without rights, on a machine with a mount below /usr. */
import { LocalMachine } from "./machine.ts";
import { run } from "./run.ts";

const machine = new LocalMachine();
const driver = await machine.open({ grade: "user" });
try {
  const workload = await driver.create({
    uid: "box",
    name: "box",
    image: "berth/base-image:latest",
    env: {},
    limits: { memoryMb: 256, cpus: 1 },
    network: "closed",
  });
  const look = `command -v node && command -v env && touch /usr/mine /usr/bin/mine && find ${process.argv[2]} -type f | wc -l`;
  console.log((await run(workload, look)).output);
} finally {
  await driver.stop("kill");
  machine.dispose();
}
