/**
 * Enforces NetworkPolicy on the node, as a network plugin of a real cluster does: pods and policies of the API server
 * become rules of nftables, after every change. No plugin that does it can be had from Debian or the Go module proxy.
 * A pod that is not in the rules yet has no network.
 */
import { POD_RANGE } from "./addresses.ts";

type Labels = Readonly<Record<string, string>>;

interface Selector {
  matchLabels?: Labels;
  matchExpressions?: { key: string; operator: "In" | "NotIn" | "Exists" | "DoesNotExist"; values?: string[] }[];
}

interface Peer {
  podSelector?: Selector;
  namespaceSelector?: Selector;
  ipBlock?: { cidr: string; except?: string[] };
}

interface Port {
  protocol?: "TCP" | "UDP" | "SCTP";
  port?: number | string;
  endPort?: number;
}

export interface Policy {
  metadata: { namespace: string };
  spec: {
    podSelector: Selector;
    policyTypes?: ("Ingress" | "Egress")[];
    ingress?: { from?: Peer[]; ports?: Port[] }[];
    egress?: { to?: Peer[]; ports?: Port[] }[];
  };
}

export interface NetworkPod {
  metadata: { namespace: string; labels?: Labels };
  spec: { hostNetwork?: boolean; containers: { ports?: { name?: string; containerPort: number }[] }[] };
  status: { podIP?: string; phase: string };
}

export interface World {
  pods: NetworkPod[];
  policies: Policy[];
  /** Labels of namespaces by their names. */
  namespaces: ReadonlyMap<string, Labels>;
}

type Side = "Ingress" | "Egress";
type Way = "saddr" | "daddr";

/** The whole table, as `nft -f` takes it. */
export function rulesFor(world: World): string {
  const pods = world.pods.filter(({ spec, status }) => !spec.hostNetwork && status.podIP && isRunning(status.phase));
  const chains = pods.flatMap((pod) => [chainOf(world, pods, pod, "Ingress"), chainOf(world, pods, pod, "Egress")]);
  const made = chains.filter((chain) => chain !== null);
  const known = pods.map(({ status }) => status.podIP).join(", ");
  const jumps = (side: Side): string[] =>
    made
      .filter((chain) => chain.side === side)
      .map(({ ip, name }) => `    ip ${side === "Ingress" ? "daddr" : "saddr"} ${ip} jump ${name}`);
  const unknown = (way: Way): string =>
    `    ip ${way} ${POD_RANGE}${known === "" ? "" : ` ip ${way} != { ${known} }`} drop`;
  return [
    ...["table inet policies", "delete table inet policies", "table inet policies {"],
    ...made.flatMap(({ name, rules }) => [`  chain ${name} {`, ...rules.map((rule) => `    ${rule}`), "  }"]),
    ...["  chain forward {", "    type filter hook forward priority 0; policy accept;"],
    ...["    ct state established,related accept", unknown("saddr"), unknown("daddr")],
    ...[...jumps("Egress"), ...jumps("Ingress"), "  }"],
    // What pods say to the node itself.
    ...["  chain input {", "    type filter hook input priority 0; policy accept;"],
    ...["    ct state established,related accept", ...jumps("Egress"), "  }", "}", ""],
  ].join("\n");
}

const isRunning = (phase: string): boolean => phase === "Running" || phase === "Pending";

/** Null for a pod that no policy of this side selects: everything may reach it, or be reached. */
function chainOf(world: World, pods: NetworkPod[], pod: NetworkPod, side: Side) {
  const policies = world.policies.filter(
    ({ metadata, spec }) =>
      metadata.namespace === pod.metadata.namespace &&
      (spec.policyTypes ?? ["Ingress"]).includes(side) &&
      selects(spec.podSelector, pod.metadata.labels),
  );
  if (policies.length === 0) return null;
  const way = side === "Ingress" ? "saddr" : "daddr";
  const rules = policies.flatMap(({ metadata, spec }) => {
    const entries =
      side === "Ingress"
        ? (spec.ingress ?? []).map(({ from, ports }) => ({ peers: from, ports }))
        : (spec.egress ?? []).map(({ to, ports }) => ({ peers: to, ports }));
    return entries.flatMap(({ peers, ports }) => {
      const addresses =
        peers === undefined ? [null] : peers.flatMap((peer) => addressesOf(world, pods, metadata, peer, way));
      return addresses.flatMap((address) => {
        const match = address === null ? "" : `ip ${way} ${address} `;
        const target = side === "Ingress" ? [pod] : pods.filter(({ status }) => status.podIP === address);
        return portsOf(ports, target).map((port) => `${match}${port}return`);
      });
    });
  });
  const ip = pod.status.podIP ?? "";
  return { side, ip, name: `${side.toLowerCase()}-${ip.replaceAll(".", "-")}`, rules: [...new Set(rules), "drop"] };
}

/** Addresses as nftables writes them. */
function addressesOf(world: World, pods: NetworkPod[], from: { namespace: string }, peer: Peer, way: Way): string[] {
  const { podSelector, namespaceSelector, ipBlock } = peer;
  if (ipBlock) {
    const except = ipBlock.except ?? [];
    return [except.length === 0 ? ipBlock.cidr : `${ipBlock.cidr} ip ${way} != { ${except.join(", ")} }`];
  }
  return pods
    .filter(({ metadata }) =>
      namespaceSelector === undefined
        ? metadata.namespace === from.namespace
        : selects(namespaceSelector, world.namespaces.get(metadata.namespace)),
    )
    .filter(({ metadata }) => podSelector === undefined || selects(podSelector, metadata.labels))
    .map(({ status }) => status.podIP ?? "");
}

/** A name of a port means the port of that name in the pod that is reached. */
function portsOf(ports: Port[] | undefined, targets: NetworkPod[]): string[] {
  if (ports === undefined) return [""];
  return ports.flatMap(({ protocol = "TCP", port, endPort }) => {
    const word = protocol.toLowerCase();
    if (port === undefined) return [`meta l4proto ${word} `];
    if (typeof port === "number") return [`${word} dport ${port}${endPort === undefined ? "" : `-${endPort}`} `];
    return targets
      .flatMap(({ spec }) => spec.containers.flatMap((container) => container.ports ?? []))
      .filter(({ name }) => name === port)
      .map(({ containerPort }) => `${word} dport ${containerPort} `);
  });
}

function selects({ matchLabels = {}, matchExpressions = [] }: Selector, labels: Labels = {}): boolean {
  return (
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every(({ key, operator, values = [] }) => {
      const has = key in labels;
      if (operator === "Exists") return has;
      if (operator === "DoesNotExist") return !has;
      return values.includes(labels[key] ?? "") === (operator === "In");
    })
  );
}
