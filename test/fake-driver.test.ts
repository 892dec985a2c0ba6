import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CAPABILITY_NAMES, type CapabilityName } from "../src/node/capabilities/capabilities.ts";
import { driverConformance } from "../src/node/conformance/conformance.ts";
import type { Harness } from "../src/node/conformance/harness.ts";
import { FakeMachine, type FakeOptions, fakeDriver } from "./fake-driver.ts";

const LACKING: readonly CapabilityName[] = ["building", "volumeCopies", "hibernation", "memorySnapshots"];
const CAPABILITIES = CAPABILITY_NAMES.filter((name) => !LACKING.includes(name));

driverConformance("fake", { capabilities: CAPABILITIES, open: () => fakeHarness() });
driverConformance("fake (core alone)", { capabilities: [], open: () => fakeHarness({ without: CAPABILITY_NAMES }) });

async function fakeHarness(options: FakeOptions = {}): Promise<Harness> {
  const machine = new FakeMachine(options);
  const harness: Harness = {
    driver: fakeDriver(machine),
    image: "fake/base-image:latest",
    read: async ({ uid }, path) => readFileSync(join(machine.rootOf(uid), path), "utf8"),
    write: async ({ uid }, path, text) => writeFileSync(join(machine.rootOf(uid), path), text),
    // It runs commands in this machine's own files, but each in a folder of its own.
    ownFiles: ["left"],
    restart: async (workloads = "keep") => {
      await harness.driver.stop(workloads);
      harness.driver = fakeDriver(machine);
      return harness.driver;
    },
    neighbour: () => fakeHarness({ ...options, node: "fake-neighbour" }),
    dispose: () => machine.dispose(),
  };
  return harness;
}
