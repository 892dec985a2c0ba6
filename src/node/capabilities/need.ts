/** Asks a driver for a capability, and refuses where the driver has none. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { PlatformError } from "../../contract/errors.ts";
import type { Driver } from "../driver.ts";
import { CAPABILITY_NAMES, CAPABILITY_WORDS, type Capabilities, type CapabilityName } from "./capabilities.ts";

type Asked = Pick<Driver, "name" | "capability">;

/** For work that cannot be done without the capability. */
export async function need<Name extends CapabilityName>(driver: Asked, name: Name): Promise<Capabilities[Name]> {
  const found = await driver.capability(name);
  if (found === null) throw new PlatformError("unprocessable", sentence(driver, name));
  return found;
}

/**
 * For a record that will need the capability later. A driver that still opens, or cannot open, refuses nothing here:
 * nobody waits for the machine to write a record, and an open driver answers before the turn ends.
 */
export async function refuseWithout(driver: Asked, name: CapabilityName): Promise<void> {
  const isAbsent = driver.capability(name).then(
    (found) => found === null,
    () => false,
  );
  if (await Promise.race([isAbsent, nextTurn(false)])) throw new PlatformError("unprocessable", sentence(driver, name));
}

/** One sentence for every capability that the driver lacks. */
export async function lacking(driver: Asked): Promise<string[]> {
  const found = await Promise.all(CAPABILITY_NAMES.map((name) => driver.capability(name)));
  return CAPABILITY_NAMES.filter((_, index) => found[index] === null).map((name) => sentence(driver, name));
}

const sentence = ({ name: driver }: Asked, name: CapabilityName): string =>
  `This server runs workloads with '${driver}', which has no ${CAPABILITY_WORDS[name]}.`;
