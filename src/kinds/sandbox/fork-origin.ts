/** Where the files of a forked sandbox come from. */
import type { Resource } from "../../store/resources/resource.ts";
import type { Deps } from "../port.ts";

export interface ForkOrigin {
  /** uid of the sandbox whose files these are. */
  of: string;
  snapshot: string;
  /** The files belong to this image; a fork that is given another one starts from that image alone. */
  image: string;
}

export const forkOf = ({ state }: Pick<Resource, "state">): ForkOrigin | null =>
  (state.fork as ForkOrigin | undefined) ?? null;

/** The snapshot to start from; one of a sandbox as it is now is taken here, once. */
export async function originSnapshot(sandbox: Resource, { driver }: Pick<Deps, "driver">): Promise<string | null> {
  const origin = forkOf(sandbox);
  const { image } = sandbox.spec.runtime as { image: string };
  if (!origin || origin.image !== image) return null;
  const there = (await driver.listSnapshots()).some(({ id }) => id === origin.snapshot);
  if (!there) await driver.snapshot(origin.of, origin.snapshot);
  return origin.snapshot;
}
