/** Compares what the database says with what really runs: nothing lost, nothing doubled, nothing left over. */
import type { Cluster } from "./cluster.ts";
import { until } from "./use.ts";

interface Row {
  kind: string;
  name: string;
  uid: string;
  node: string | null;
  status: string;
  state: string;
}

const PLACED = "SELECT kind, name, uid, node, status, state FROM resources WHERE deleted_at IS NULL AND kind IN";
const DEPLOYED_KINDS = "('agent', 'function', 'application')";

/** Waits until the records and the machines of all servers agree. Servers that are down may run what they ran. */
export const agrees = (cluster: Cluster<string>): Promise<string[]> =>
  until(
    () => differences(cluster),
    ({ length }) => length === 0,
  );

async function differences({ all, query, isShared }: Cluster<string>): Promise<string[]> {
  const rows = await query<Row>(`${PLACED} ('sandbox') UNION ALL ${PLACED} ${DEPLOYED_KINDS}`);
  const expected = rows.flatMap((row) => uidsOf(row).map((uid) => ({ uid, node: row.node, name: row.name })));
  const found: string[] = [];
  const places = new Map<string, string>();
  // Of servers that share their workloads one tells them all.
  for (const member of isShared ? all.slice(0, 1) : all) {
    const running = member.running();
    for (const { uid, name } of running) {
      const other = places.get(uid);
      if (other) found.push(`${name} runs at ${other} and at ${member.name}`);
      places.set(uid, member.name);
    }
    if (!member.isUp && !isShared) continue;
    const mine = expected.filter(({ node }) => isShared || node === member.id);
    for (const { uid, name } of mine)
      if (!running.some((each) => each.uid === uid)) found.push(`${name} (${uid}) does not run at ${member.name}`);
    for (const { uid, name } of running)
      if (!mine.some((each) => each.uid === uid)) found.push(`${name} (${uid}) runs at ${member.name} for no record`);
    found.push(...member.strayGroups().map((group) => `group ${group} at ${member.name} belongs to nothing`));
  }
  return found;
}

function uidsOf({ kind, uid, status, state }: Row): string[] {
  if (kind === "sandbox") return status === "DEPLOYED" ? [uid] : [];
  const { copies = [] } = JSON.parse(state) as { copies?: { uid: string }[] };
  return copies.map((copy) => copy.uid);
}
