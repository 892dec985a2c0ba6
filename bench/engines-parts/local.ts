/** The local driver, without a pool and with one. */
import { LocalMachine, localDriverMissing } from "../../test/local/machine.ts";
import { DOCKER_RUN } from "./docker.ts";
import { type Findings, measureDriver } from "./start.ts";

const POOL_SIZE = 2;

export async function measureLocal(): Promise<Findings> {
  if (localDriverMissing !== null) return [{ name: "local", reason: localDriverMissing }];
  const found: Findings = [];
  for (const poolSize of [0, POOL_SIZE]) {
    const machine = new LocalMachine();
    const driver = await machine.open({ poolSize });
    const pooled = poolSize > 0;
    try {
      const name = pooled ? "local, warm" : "local, cold";
      found.push(await measureDriver({ name, against: DOCKER_RUN, driver, pooled }));
    } finally {
      await driver.stop("kill");
      machine.dispose();
    }
  }
  return found;
}
