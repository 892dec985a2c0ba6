/**
 * Finds the workloads that names below `<vpc>.internal` lead to. A name is looked up in the workspace and the VPC of the
 * workload that asks, so no name leads to another workspace or VPC, and a name that was deleted leads nowhere.
 */
import type { InstancesState } from "../../contract/instance.ts";
import type { Activity } from "../../lib/activity.ts";
import { type EgressRefusal, refusal } from "../../lib/network/egress/egress-refusal.ts";
import type { Host } from "../../lib/network/egress/host.ts";
import type { Neighbour, Neighbours } from "../../lib/network/egress/neighbours.ts";
import type { WorkloadRules } from "../../lib/network/egress/workload-rules.ts";
import { type InternalName, internalNameOf, type WorkloadVpc } from "../../lib/network/egress/workload-vpc.ts";
import { type Clock, SECOND_MS } from "../../lib/time/clock.ts";
import type { Endpoint } from "../../node/dial/endpoint.ts";
import type { Resource } from "../../store/resources/resource.ts";
import type { Store } from "../../store/store.ts";
import type { DeployState } from "../workload/deploy-state.ts";
import { MEMBER_KINDS, vpcNameOf } from "./members.ts";

/** Kinds whose workloads have a name. A job has as many tasks as it runs, and none that lasts. */
const NAMED_KINDS = MEMBER_KINDS.filter((kind) => kind !== "job");
/** How long a connection waits for a workload that sleeps or has no copy. */
const WAKE_MS = 30 * SECOND_MS;

interface Parts {
  store: Pick<Store, "resources">;
  clock: Clock;
  activity: Activity;
  /** Name of this machine. */
  node: string;
  rules: {
    of(uid: string): Promise<WorkloadRules>;
    ownerOf(uid: string): Promise<Resource | null>;
  };
}

export function createNeighbours({ store, clock, activity, node, rules }: Parts): Neighbours<Endpoint> {
  async function holderOf(workspace: string, vpc: WorkloadVpc, asked: InternalName): Promise<Resource | null> {
    const kinds = asked.kind === null ? NAMED_KINDS : NAMED_KINDS.filter((kind) => kind === asked.kind);
    const found = await Promise.all(
      kinds.map((kind) => store.resources.get({ workspace, kind, parent: "" }, asked.name)),
    );
    const members = found.filter(
      (each): each is Resource =>
        each !== null && !each.retired && each.deletedAt === null && vpcNameOf(each.spec) === vpc.name,
    );
    // Uids are in the order of creation: nobody takes a name from the resource that has it.
    return members.sort((one, other) => (one.uid < other.uid ? -1 : 1))[0] ?? null;
  }

  /** The state of an idle workload says that it is wanted; the reconcile loop starts it. */
  async function want({ workspace, uid, state }: Resource): Promise<void> {
    const { activeRevision }: DeployState = state;
    const wanted = activeRevision === undefined ? {} : { wantedRevision: activeRevision };
    await store.resources.update(workspace, uid, (current) =>
      runningOf(current).length > 0 ? null : { state: { ...current.state, wantedAt: clock.now(), ...wanted } },
    );
  }

  async function woken(holder: Resource): Promise<Resource | null> {
    if (runningOf(holder).length > 0) return holder;
    const { workspace, uid } = holder;
    await want(holder);
    const isSettled = (now: Resource | null): boolean =>
      now === null || now.deletedAt !== null || IDLE.includes(now.status ?? "") || runningOf(now).length > 0;
    return store.resources
      .waitFor(workspace, uid, isSettled, { signal: AbortSignal.timeout(WAKE_MS) })
      .catch(() => null);
  }

  function neighbourOn(holder: Resource): Neighbour<Endpoint> | null {
    const [first] = runningOf(holder).sort((one, other) => activity.openOf(one.uid) - activity.openOf(other.uid));
    if (!first) return null;
    return {
      ...{ uid: first.uid, owner: holder.uid, endpoint: first.endpoint },
      use: () => use(first.uid, holder.uid),
    };
  }

  function use(uid: string, owner: string): () => void {
    const ends = [...new Set([uid, owner])].map((key) => activity.begin(key));
    return () => ends.forEach((end) => void end());
  }

  async function touch(uid: string): Promise<void> {
    const owner = await rules.ownerOf(uid);
    if (!owner || owner.retired || owner.deletedAt !== null) return;
    use(uid, owner.uid)();
    if (runningOf(owner).length === 0) await want(owner);
  }

  async function find(uid: string, host: Host): Promise<Neighbour<Endpoint> | EgressRefusal | null> {
    const { vpc } = await rules.of(uid);
    const asked = vpc && internalNameOf(host, vpc.name);
    if (!vpc || !asked) return null;
    if (!vpc.internal) return notInternal(host, vpc);
    const owner = await rules.ownerOf(uid);
    const holder = owner && (await holderOf(owner.workspace, vpc, asked));
    if (!holder)
      return refusal(502, "name_not_resolved", `No workload of the VPC '${vpc.name}' is named ${host.text}.`);
    if (holder.node !== null && holder.node !== node) return elsewhere(host, holder);
    const running = await woken(holder);
    return (running && neighbourOn(running)) ?? asleep(host, holder);
  }

  return { find, touch };
}

/** States in which nothing is started, however much it is wanted. */
const IDLE = ["FAILED", "DEACTIVATED", "TERMINATED"];

const runningOf = ({ state }: { state: InstancesState<Endpoint> }) =>
  (state.instances ?? []).filter(({ phase }) => phase === "running");

const notInternal = ({ text }: Host, { name }: WorkloadVpc): EgressRefusal => ({
  ...refusal(403, "firewall_blocked", `${text} is refused: workloads of the VPC '${name}' do not reach each other.`),
  rule: `vpc ${name}: spec.internal`,
});

const elsewhere = ({ text }: Host, { node }: Resource): EgressRefusal =>
  refusal(502, "other_server", `${text} runs on the server ${node}; names of a VPC lead to workloads of one server.`);

const asleep = ({ text }: Host, { status }: Resource): EgressRefusal =>
  refusal(503, "workload_not_running", `${text} does not run (${status ?? "no status"}).`);
