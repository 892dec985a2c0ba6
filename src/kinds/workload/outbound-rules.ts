/**
 * The outbound rules of the workloads on this machine, read from the records: `spec.network` of the resource that owns
 * a workload, and the network policies of its workspace. The rules of a resource are compiled once and again after each
 * change; workloads whose rules cannot be read reach nothing.
 */
import { restoreSecrets } from "../../contract/secret-fields.ts";
import { canonicalJson } from "../../lib/canonical-json.ts";
import { type Bandwidth, type BandwidthSpec, lowestBandwidth } from "../../lib/network/egress/bandwidth.ts";
import type { OperatorNetwork } from "../../lib/network/egress/operator-networks.ts";
import { closedPolicy, type PlacedRules } from "../../lib/network/egress/outbound-policy.ts";
import { NO_ROUTES } from "../../lib/network/egress/routes.ts";
import type { RulesSource, WorkloadRules } from "../../lib/network/egress/workload-rules.ts";
import type { Driver } from "../../node/driver.ts";
import type { WorkloadSpec } from "../../node/workload.ts";
import { ofKind, type Resource } from "../../store/resources/resource.ts";
import type { Store } from "../../store/store.ts";
import { egressGateway } from "../egress-gateway/kind.ts";
import { egressIp } from "../egress-ip/kind.ts";
import { appliesTo, policy as policyKind } from "../policy/kind.ts";
import { sandbox } from "../sandbox/kind.ts";
import { vpc as vpcKind } from "../vpc/kind.ts";
import { placeOf, vpcOf } from "../vpc/members.ts";
import { compileNetwork, networkOf } from "./network.ts";
import { gatewayOf, sourcesOf } from "./network-place.ts";
import { networkSecrets } from "./network-spec.ts";

/** Network policies of one workspace that apply; more would be a mistake. */
const POLICIES_MAX = 1000;
/** Workloads whose owner is remembered; tasks come and go. */
const OWNERS_MAX = 10_000;

const EGRESS_KINDS: ReadonlySet<string> = new Set([egressGateway.name, egressIp.name]);

interface Parts {
  store: Pick<Store, "resources">;
  /** The name of this machine: addresses of other machines are of no use here. */
  node: string;
  /** Networks that VPCs may have routes to. */
  networks: readonly OperatorNetwork[];
  /** The limit that the operator sets for every workload; absent = none. */
  bandwidthMbps?: number | undefined;
  driver: () => Pick<Driver, "observe">;
  onError(error: unknown): void;
}

interface Known {
  generation: number | null;
  rules: Promise<WorkloadRules>;
  /** The workload leaves by an egress gateway. */
  hasGateway: boolean;
  /** Id of the workload's VPC; null = it belongs to none. Undefined until the rules are read. */
  vpc?: string | null;
}

type Loaded = Pick<Known, "generation" | "hasGateway" | "vpc"> & { rules: WorkloadRules };

export interface OutboundRules extends RulesSource {
  /** Remembers the owner of a workload that is about to start: its log names it, a sandbox has the owner's uid. */
  own(workload: Pick<WorkloadSpec, "uid" | "log">): void;
  /** The resource that owns a workload; null when there is none any more. */
  ownerOf(uid: string): Promise<Resource | null>;
  stop(): Promise<void>;
}

export function createOutboundRules(parts: Parts): OutboundRules {
  const { store, node, networks, bandwidthMbps, driver, onError } = parts;
  const everybodys: BandwidthSpec = { sendMbps: bandwidthMbps, receiveMbps: bandwidthMbps };
  const owners = new Map<string, string>();
  const known = new Map<string, Known>();
  const listeners = new Set<(uid: string) => void>();

  function own({ uid, log }: Pick<WorkloadSpec, "uid" | "log">): string {
    const owner = log?.uid ?? uid;
    owners.set(uid, owner);
    const [oldest] = owners.keys();
    if (owners.size > OWNERS_MAX && oldest !== undefined) owners.delete(oldest);
    return owner;
  }

  /** Workloads of an earlier run of the server are known by their records. */
  async function ownerUidOf(uid: string): Promise<string> {
    const found = owners.get(uid);
    if (found !== undefined) return found;
    const observed = await driver().observe(uid);
    return observed ? own(observed) : uid;
  }

  async function load(owner: string): Promise<Loaded> {
    const resource = await store.resources.getAcrossWorkspaces(owner);
    if (!resource || resource.retired)
      return { generation: null, hasGateway: false, vpc: null, rules: closed("the rule that a workload has an owner") };
    const { generation, spec } = resource;
    const rules = await compiled(resource);
    return { generation, hasGateway: gatewayOf(spec) !== undefined, vpc: rules.vpc?.id ?? null, rules };
  }

  async function compiled(resource: Resource): Promise<WorkloadRules> {
    const workspace = await workspaceRules(resource);
    const sources = await sourcesOf(resource, node, store);
    const vpc = await vpcOf(resource, networks, store);
    const spec = { network: structuredClone(networkOf(resource.spec)) };
    restoreSecrets({ spec }, [networkSecrets], store.resources.secretsOf(resource));
    try {
      const asked = [...workspace.map(({ rules }) => rules), spec.network].map((rules) => rules.bandwidth);
      const bandwidth = lowestBandwidth([everybodys, ...asked]);
      show(resource, bandwidth);
      return {
        ...compileNetwork(spec.network, workspace, sources, vpc),
        bandwidth,
        owner: { workspace: resource.workspace },
      };
    } catch (error) {
      onError(error); // rules of an older version of the server; new ones are checked when they are written
      return closed("spec.network, which cannot be understood");
    }
  }

  /** The record shows the limit that holds; it depends on more than the record. */
  function show({ workspace, uid, kind, state }: Resource, bandwidth: Bandwidth | null): void {
    if (kind !== sandbox.name) return;
    const isShown = ({ bandwidth: shown = null }: Resource["state"]): boolean =>
      canonicalJson(shown) === canonicalJson(bandwidth);
    if (isShown(state)) return;
    store.resources
      .update(workspace, uid, (now) =>
        isShown(now.state) ? null : { state: { ...now.state, bandwidth: bandwidth ?? undefined } },
      )
      .catch(onError);
  }

  async function workspaceRules(resource: Resource): Promise<PlacedRules[]> {
    const { workspace } = resource;
    // A build of an image has the rules of what the image is for.
    const kind = resource.kind === "image" ? String(resource.spec.resourceType) : resource.kind;
    const policies = await store.resources.listNested(workspace, policyKind.name, POLICIES_MAX);
    return policies
      .map((each) => ofKind(policyKind, each))
      .filter(({ spec, deletedAt }) => spec.type === "network" && deletedAt === null && appliesTo(spec, kind))
      .map(({ name, spec }) => ({
        place: `policy ${name}: spec.network`,
        rules: spec.network ?? {},
      }));
  }

  function reload(owner: string): Promise<WorkloadRules> {
    const loading = load(owner);
    // Until the gateway is known, every change of a gateway is taken as a change of this workload.
    const entry: Known = { generation: null, hasGateway: true, rules: loading.then(({ rules }) => rules) };
    known.set(owner, entry);
    loading.then(
      ({ generation, hasGateway, vpc }) => {
        Object.assign(entry, { generation, hasGateway, vpc });
      },
      () => {
        if (known.get(owner) === entry) known.delete(owner); // the caller gets the error; the next one tries again
      },
    );
    return entry.rules;
  }

  function changed(owner: string): void {
    const before = known.get(owner)?.vpc;
    reload(owner)
      .catch(onError)
      .then((rules) => {
        tell((each) => each === owner);
        // Who left a VPC is no longer reached by those who stayed.
        if (before && before !== rules?.vpc?.id) tell((each) => known.get(each)?.vpc === before);
      });
  }

  function tell(isMeant: (owner: string) => boolean): void {
    for (const [uid, owner] of owners) if (isMeant(owner)) for (const listener of listeners) listener(uid);
  }

  /** A VPC that was made just now is known by its place only. */
  async function vpcChanged(uid: string): Promise<void> {
    const vpc = await store.resources.getAcrossWorkspaces(uid);
    const ids = new Set<string | null | undefined>([uid, undefined, vpc ? placeOf(vpc) : uid]);
    for (const [owner, entry] of known) if (ids.has(entry.vpc)) changed(owner);
  }

  /** Records change often for other reasons, which leave the generation as it is. */
  async function look(owner: string, before: Known): Promise<void> {
    const resource = await store.resources.getAcrossWorkspaces(owner);
    if (known.get(owner) !== before) return;
    if (resource === null || resource.retired) known.delete(owner);
    else if (resource.generation !== before.generation) changed(owner);
  }

  const unsubscribe = store.resources.onChange((kind, uid) => {
    const isPolicy = kind === policyKind.name;
    if (kind === vpcKind.name) vpcChanged(uid).catch(onError);
    if (isPolicy || EGRESS_KINDS.has(kind))
      for (const [owner, { hasGateway }] of known) if (isPolicy || hasGateway) changed(owner);
    const before = known.get(uid);
    if (before) look(uid, before).catch(() => changed(uid));
  });

  return {
    own,
    async of(uid) {
      const owner = await ownerUidOf(uid);
      return known.get(owner)?.rules ?? reload(owner);
    },
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    ownerOf: async (uid) => store.resources.getAcrossWorkspaces(await ownerUidOf(uid)),
    async stop() {
      unsubscribe();
    },
  };
}

const closed = (rule: string): WorkloadRules => ({
  policy: closedPolicy(rule),
  routes: NO_ROUTES,
  sources: null,
  bandwidth: null,
  owner: null,
  vpc: null,
});
