/** Where the files of a forked sandbox come from. */
import { need } from "../../node/capabilities/need.ts";
import type { Deps } from "../port.ts";
import type { Sandbox } from "./kind.ts";

/** The snapshot to start from. For a fork of the current files, it is taken here, once. */
export async function originSnapshot(sandbox: Sandbox, { driver }: Pick<Deps, "driver">): Promise<string | null> {
  const { fork: origin } = sandbox.state;
  if (!origin || origin.image !== sandbox.spec.runtime?.image) return null;
  const snapshots = await need(driver, "snapshots");
  const there = (await snapshots.list()).some(({ id }) => id === origin.snapshot);
  if (!there) await snapshots.take(origin.of, origin.snapshot);
  return origin.snapshot;
}
