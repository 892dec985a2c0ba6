/** Where the files of a forked sandbox come from. */
import { need } from "../../node/capabilities/need.ts";
import type { Resource } from "../../store/resources/resource.ts";
import type { Deps } from "../port.ts";

export interface ForkOrigin {
  /** uid of the sandbox that the files come from. */
  of: string;
  /** Its name at that time; absent in forks of older versions. */
  name?: string;
  snapshot: string;
  /** The files belong to this image. A fork with another image starts without them. */
  image: string;
}

export const forkOf = ({ state }: Pick<Resource, "state">): ForkOrigin | null =>
  (state.fork as ForkOrigin | undefined) ?? null;

/** The snapshot to start from. For a fork of the current files, it is taken here, once. */
export async function originSnapshot(sandbox: Resource, { driver }: Pick<Deps, "driver">): Promise<string | null> {
  const origin = forkOf(sandbox);
  const { image } = sandbox.spec.runtime as { image: string };
  if (!origin || origin.image !== image) return null;
  const snapshots = await need(driver, "snapshots");
  const there = (await snapshots.list()).some(({ id }) => id === origin.snapshot);
  if (!there) await snapshots.take(origin.of, origin.snapshot);
  return origin.snapshot;
}
