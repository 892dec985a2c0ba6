/** Gives the resources that older versions made, which name no node, to the node that has them. */
import type { Driver } from "../../node/driver.ts";
import type { Resource } from "../../store/resources/resource.ts";
import { KINDS } from "../index.ts";
import type { Deps } from "../port.ts";
import type { DeployState } from "../workload/deploy-state.ts";

const PAGE = 500;

export const PLACED_KINDS = KINDS.filter(({ placed }) => placed).map(({ name }) => name);

/**
 * A resource whose workload or files this machine has is this node's; so is one that names this machine, whose
 * `machineName` older versions wrote down. The only live node adopts the rest. Returns how many are left for others.
 */
export async function adoptUnowned(deps: Deps, machineName: string): Promise<number> {
  const { store, nodes, driver } = deps;
  if (nodes.shared) return 0;
  const isOnly = (): boolean => nodes.list().every(({ id, live }) => id === nodes.self.id || !live);
  const has = await contentsOf(driver);
  let left = 0;
  for (let after = ""; ; ) {
    const page = await store.ownership.listUnowned(PLACED_KINDS, after, PAGE);
    const mine: Resource[] = [];
    for (const resource of page)
      if ((await has(resource)) || namesMachine(resource, machineName) || isOnly()) mine.push(resource);
    await store.ownership.adopt(nodes.self.id, mine);
    left += page.length - mine.length;
    after = page.at(-1)?.uid ?? "";
    if (page.length < PAGE) return left;
  }
}

/** Tells whether this machine has the workload or the files of a resource. */
async function contentsOf(driver: Driver): Promise<(resource: Resource) => Promise<boolean>> {
  const workloads = new Set((await driver.list().catch(() => [])).map(({ uid }) => uid));
  const [volumes, drives, snapshots, volumeCopies] = await Promise.all([
    driver.capability("volumes").catch(() => null),
    driver.capability("drives").catch(() => null),
    driver.capability("snapshots").catch(() => null),
    driver.capability("volumeCopies").catch(() => null),
  ]);
  const taken = new Set(
    [...((await snapshots?.list()) ?? []), ...((await volumeCopies?.list()) ?? [])].map(({ id }) => id),
  );
  return async ({ kind, uid, parent, name, state }) => {
    if (kind === "volume") return (await volumes?.observe(uid)) != null;
    if (kind === "drive") return (await drives?.bytes(uid)) != null;
    if (kind === "snapshot" || kind === "volumesnapshot") return taken.has(name);
    const { copies = [] }: DeployState = state;
    return [uid, parent, ...copies.map((copy) => copy.uid)].some((one) => workloads.has(one));
  };
}

function namesMachine({ spec, state }: Resource, machineName: string): boolean {
  const { instances = [] }: DeployState = state;
  return [spec.infrastructureId, ...instances.map(({ endpoint }) => endpoint?.node)].includes(machineName);
}
