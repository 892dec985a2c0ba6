/**
 * What every driver must do, as tests. A driver's own test file calls `driverConformance` with a way to open the driver
 * and to look inside its workloads, and declares the driver's capabilities. The core is tested always, a capability where
 * it is declared; expectations are the same for all drivers.
 */

import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { CAPABILITY_NAMES, type CapabilityName } from "../capabilities/capabilities.ts";
import type { Limits } from "../workload.ts";
import { building } from "./building.ts";
import { aloneOnly, commands } from "./commands.ts";
import { drives } from "./drives.ts";
import { freezing } from "./freezing.ts";
import { type Harness, type Make, newUid, type Part } from "./harness.ts";
import { hibernation } from "./hibernation.ts";
import { hotMounts } from "./hot-mounts.ts";
import { images } from "./images.ts";
import { keptFiles } from "./kept-files.ts";
import { lifecycle } from "./lifecycle.ts";
import { memorySnapshots } from "./memory-snapshots.ts";
import { neighbours } from "./neighbours.ts";
import { resizing } from "./resizing.ts";
import { snapshots } from "./snapshots.ts";
import { unpacking } from "./unpacking.ts";
import { volumeCopies } from "./volume-copies.ts";
import { volumes } from "./volumes.ts";

export interface Candidate {
  /** Those that the driver has. */
  capabilities: readonly CapabilityName[];
  open(): Promise<Harness>;
  /** Of a workload, where the machine has no room for several of the usual ones. */
  limits?: Limits;
  /** The same driver in another way of isolation: what does not depend on it was shown at the first one. */
  again?: boolean;
}

const LIMITS: Limits = { memoryMb: 256, cpus: 1 };

const PARTS: Readonly<Record<CapabilityName, Part>> = {
  freezing,
  hibernation,
  hotMounts,
  resizing,
  snapshots,
  memorySnapshots,
  volumes,
  volumeCopies,
  drives,
  images,
  unpacking,
  building,
};

export function driverConformance(
  name: string,
  { capabilities, open, limits = LIMITS, again = false }: Candidate,
): void {
  suite(`${name} driver`, { timeout: 540_000 }, () => {
    let harness: Harness;
    const made: string[] = [];
    before(async () => {
      harness = await open();
    });
    after(async () => {
      for (const each of made) await harness.driver.destroy(each);
      await harness.dispose();
    });
    const get = (): Harness => harness;
    const spec: Make = (more = {}) => {
      const id = more.uid ?? newUid();
      made.push(id);
      return { uid: id, name: "box", image: harness.image, env: {}, limits, network: "closed", ...more };
    };
    test("the driver has the capabilities that it declares, and no others", async () => {
      for (const each of CAPABILITY_NAMES)
        assert.equal((await harness.driver.capability(each)) !== null, capabilities.includes(each), each);
    });
    lifecycle(get, spec);
    suite("files that are kept", () => keptFiles(get, spec));
    suite("a command", () => commands(get, spec));
    suite("a command alone", () => {
      const alone: Make = (more = {}) =>
        spec({ ...more, ...(more.exec ? { exec: { ...more.exec, alone: true } } : {}) });
      if (!again) commands(get, alone);
      aloneOnly(get, alone);
    });
    for (const each of capabilities) suite(each, () => PARTS[each](get, spec));
    if (!again) suite("beside another node of the machine", () => neighbours(get, spec, capabilities));
  });
}
