/** Which sandboxes a snapshot of memory can be taken of. */
import { PlatformError } from "../../contract/errors.ts";
import { refuseWithout } from "../../node/capabilities/need.ts";
import type { Driver } from "../../node/driver.ts";
import { mountsOf } from "../drive/mounts.ts";
import type { Sandbox } from "../sandbox/kind.ts";

/** Refuses before anything is stored. The driver looks again when the snapshot is taken. */
export async function requireMemory(source: Sandbox, driver: Pick<Driver, "name" | "capability">): Promise<void> {
  await refuseWithout(driver, "memorySnapshots");
  const { isolation } = source.state;
  if (isolation !== undefined && isolation !== "vm-like")
    throw new PlatformError(
      "unprocessable",
      `memory: needs isolation 'vm-like' (spec.runtime.isolation), and sandbox '${source.name}' has '${isolation}'.`,
    );
  if ((source.spec.volumes?.length ?? 0) > 0 || mountsOf(source).length > 0)
    throw new PlatformError(
      "unprocessable",
      `memory: needs a sandbox without volumes and drives, because programs may have their files open, and sandbox '${source.name}' has some.`,
    );
}
