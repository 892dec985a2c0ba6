import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { driverConformance, type Harness } from "../src/node/conformance.ts";
import { FakeMachine, fakeDriver } from "./fake-driver.ts";

driverConformance("fake", async (): Promise<Harness> => {
  const machine = new FakeMachine();
  const harness: Harness = {
    driver: fakeDriver(machine),
    image: "fake/base-image:latest",
    read: async ({ uid }, path) => readFileSync(join(machine.rootOf(uid), path), "utf8"),
    write: async ({ uid }, path, text) => writeFileSync(join(machine.rootOf(uid), path), text),
    // It runs commands in this machine's own files, but each in a folder of its own.
    ownFiles: ["left"],
    restart: async () => {
      harness.driver = fakeDriver(machine);
      return harness.driver;
    },
    dispose: () => machine.dispose(),
  };
  return harness;
});
