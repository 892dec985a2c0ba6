/**
 * Makes the connections of workloads to the outside. A name is resolved once, every address of it is judged, and the
 * connection goes to an address that was judged. Connections that a change of rules no longer allows are cut.
 */
import type { Socket } from "node:net";
import { FairQueue } from "../../lib/fair-queue.ts";
import { classifyAddress, isRoutable, parseAddress } from "../../lib/network/address-class.ts";
import type { HttpRequest } from "../../lib/network/egress/http-target.ts";
import { OPEN_POLICY } from "../../lib/network/egress/outbound-policy.ts";
import { NO_ROUTES } from "../../lib/network/egress/routes.ts";
import { leavesFrom, type SourceAddresses } from "../../lib/network/egress/source-addresses.ts";
import type { Refusal, RulesSource, WorkloadRules } from "../../lib/network/egress/workload-rules.ts";
import { hasRoute } from "../../lib/network/egress/workload-vpc.ts";
import { resolveName } from "../../lib/network/stranger-names.ts";
import { connectNeighbour, doorRefusal, type Neighbour, type Neighbours } from "./neighbours.ts";
import { newPaces, type Paces, setPaces } from "./pace.ts";
import { connectAny, pathsTo } from "./paths.ts";
import { type EgressRefusal, isRefusal, refusal, refusedBy } from "./refusal.ts";
import type { Target } from "./target.ts";

export interface DialOptions {
  /** Bytes that left and entered since the last report of the same connection. */
  onBytes?: (uid: string, sentBytes: number, receivedBytes: number) => void;
  /** The rules of workloads; absent = every workload reaches every public address. */
  rules?: RulesSource;
  /** Called for every refusal. */
  onRefused?: (uid: string, refused: Refusal) => void;
  /** The operator's exceptions from the rule that only public addresses are reached. */
  allowed?: (host: string, port: number, address: string) => boolean;
  resolve?: (host: string) => Promise<string[]>;
  /** Other workloads of a workload's VPC; absent = no workload reaches another one. */
  neighbours?: Neighbours;
}

/** A destination that may be dialled. */
export interface Admitted {
  target: Target;
  /** Empty for another workload of the VPC. */
  addresses: string[];
  neighbour?: Neighbour;
  rules: WorkloadRules;
  /** The client's bytes came through the workload's own interface, which counts them. */
  countedThere?: boolean;
}

/** A tunnel in which nothing moves. */
const IDLE_MAX_MS = 15 * 60_000;
/** Long connections are counted while they last. */
const REPORT_EVERY_MS = 30_000;
/** One workload's connections at once; a crawler uses a few dozen. */
const CONNECTIONS_MAX = 256;
/** Look-ups of names. One workload's slow name servers hold up its own look-ups only. */
const LOOKUPS = { atOnce: 512, atOncePerOwner: 16, waitingMax: CONNECTIONS_MAX };
/** Workloads whose bandwidth is remembered: more than one machine runs at once. */
const PACES_MAX = 10_000;
/** Mail from a stranger's machine is spam; everybody blocks it, and blames the machine. */
const PORTS_REFUSED = [25];

const RULES_UNAVAILABLE = refusal(
  503,
  "rules_unavailable",
  "The rules of this workload cannot be read now; try again.",
);
const NO_RULES: WorkloadRules = {
  ...{ policy: OPEN_POLICY, routes: NO_ROUTES },
  ...{ sources: null, bandwidth: null, owner: null, vpc: null },
};

const TOO_MANY_LOOKUPS = refusal(429, "too_many_lookups", "Too many names of this workload wait to be resolved.");

export interface OpenConnection {
  target: Target;
  /** Absent for a connection to another workload of the VPC. */
  address?: string;
  neighbour?: Neighbour;
  /** The source address that the workload's gateway gave; absent = the machine chose. */
  from?: string;
  socket: Socket;
  /** The first bytes of the client were compared with the target, or a rule judges every request. */
  checked: boolean;
  /** The bandwidth of the workload, which its connections share. */
  paces: Paces;
}

export class Dialler {
  readonly #options: DialOptions;
  readonly #open = new Map<string, Set<OpenConnection>>();
  /** Connections that are being made, by workload. */
  readonly #dialling = new Map<string, number>();
  /** By workload. */
  readonly #paces = new Map<string, Paces>();
  readonly #lookups = new FairQueue(LOOKUPS);
  readonly #unsubscribe: () => void;
  /** Counts connections, for gateways whose addresses are used in turn. */
  #turn = 0;

  constructor(options: DialOptions) {
    this.#options = options;
    this.#unsubscribe = options.rules?.onChange((uid) => void this.#recheck(uid)) ?? (() => {});
  }

  rulesOf(uid: string): Promise<WorkloadRules> {
    return this.#options.rules?.of(uid) ?? Promise.resolve(NO_RULES);
  }

  /** Judges a destination, without connecting. */
  async admit(uid: string, target: Target, http?: HttpRequest): Promise<Admitted | EgressRefusal> {
    const rules = await this.rulesOf(uid).catch(() => null);
    const admitted = rules ? await this.#judge(uid, target, rules, http) : RULES_UNAVAILABLE;
    if (isRefusal(admitted)) this.tell(uid, target, admitted);
    return admitted;
  }

  /** Connects to a destination that was admitted. */
  async dial(
    uid: string,
    { target, addresses, neighbour, rules, countedThere }: Admitted,
  ): Promise<OpenConnection | EgressRefusal> {
    const dialling = this.#dialling.get(uid) ?? 0;
    if ((this.#open.get(uid)?.size ?? 0) + dialling >= CONNECTIONS_MAX)
      return refusal(429, "too_many_connections", "Too many connections.");
    this.#dialling.set(uid, dialling + 1);
    this.#turn += 1;
    const dialled = neighbour
      ? await connectNeighbour(neighbour, target.port)
      : await connectAny(pathsTo(addresses, rules.sources, this.#turn), target.port);
    const left = (this.#dialling.get(uid) ?? 1) - 1;
    if (left > 0) this.#dialling.set(uid, left);
    else this.#dialling.delete(uid);
    if (dialled === "no-source" && rules.sources) {
      const missing = noSource(rules.sources.gateway);
      this.tell(uid, target, missing);
      return missing;
    }
    if (dialled === "no-source" || dialled === null)
      return refusal(502, "connection_failed", "The host does not accept the connection.");
    const connection: OpenConnection = { target, ...dialled, checked: false, paces: this.pacesOf(uid, rules) };
    this.#keep(uid, connection, !countedThere);
    // The rules may have changed while the connection was made.
    if ((await this.rulesOf(uid).catch(() => null)) !== rules) await this.#recheck(uid);
    return connection;
  }

  /** Judges one request on a connection to a destination that was admitted before. */
  async admitRequest(
    uid: string,
    { target, addresses, neighbour }: Admitted,
    http: HttpRequest,
  ): Promise<WorkloadRules | EgressRefusal> {
    const rules = await this.rulesOf(uid).catch(() => null);
    if (!rules) return RULES_UNAVAILABLE;
    for (const address of neighbour ? [undefined] : addresses) {
      const verdict = rules.policy.judge({ ...destination(target, address), http });
      if (verdict.allowed) continue;
      const refused = refusedBy(target.host.text, verdict.rule);
      this.tell(uid, target, refused);
      return refused;
    }
    return rules;
  }

  /** The bandwidth of a workload, as its rules are now. */
  pacesOf(uid: string, { bandwidth }: Pick<WorkloadRules, "bandwidth">): Paces {
    const paces = this.#paces.get(uid) ?? newPaces();
    setPaces(paces, bandwidth);
    this.#paces.set(uid, paces);
    const [oldest] = this.#paces.keys();
    if (this.#paces.size > PACES_MAX && oldest !== undefined) this.#paces.delete(oldest);
    return paces;
  }

  tell(uid: string, { host, port }: Target, { code, rule }: EgressRefusal): void {
    this.#options.onRefused?.(uid, { code, host: host.text, port, ...(rule === undefined ? {} : { rule }) });
  }

  stop(): void {
    this.#unsubscribe();
    for (const connections of this.#open.values()) for (const { socket } of connections) socket.destroy();
  }

  #keep(uid: string, connection: OpenConnection, counts: boolean): void {
    const { socket } = connection;
    const connections = this.#open.get(uid) ?? new Set();
    this.#open.set(uid, connections.add(connection));
    const report = counts ? meter(socket, (sent, received) => this.#options.onBytes?.(uid, sent, received)) : null;
    socket.once("close", () => {
      report?.();
      connections.delete(connection);
      if (connections.size > 0 || this.#open.get(uid) !== connections) return;
      this.#open.delete(uid);
      this.#paces.delete(uid);
    });
    socket.on("error", () => socket.destroy());
    socket.setTimeout(IDLE_MAX_MS, () => socket.destroy());
  }

  async #recheck(uid: string): Promise<void> {
    if (!this.#open.has(uid)) return;
    const rules = await this.rulesOf(uid).catch(() => null);
    if (rules) this.pacesOf(uid, rules);
    for (const { target, address, neighbour, from, socket, checked } of this.#open.get(uid) ?? []) {
      // The address may be another tenant's in a moment.
      const isLeft = neighbour
        ? await this.#isGone(uid, target, neighbour)
        : rules && !(mayLeave(rules.sources, from) && this.#isReachable(target, rules, address ?? ""));
      if (isLeft) {
        socket.destroy();
        continue;
      }
      const verdict = rules?.policy.judge({ ...destination(target, address) });
      const isHidden = !checked && !target.host.address && rules?.policy.listsNames;
      if (verdict?.allowed && !isHidden) continue;
      const rule = verdict && !verdict.allowed ? verdict.rule : "spec.network";
      this.tell(uid, target, refusedBy(target.host.text, rule));
      socket.destroy();
    }
  }

  async #isGone(uid: string, { host }: Target, neighbour: Neighbour): Promise<boolean> {
    const found = await this.#options.neighbours?.find(uid, host).catch(() => null);
    return !found || isRefusal(found) || found.owner !== neighbour.owner;
  }

  /** Public addresses, those that the operator lets through, and networks that the workload's VPC has a route to. */
  #isReachable({ host, port }: Target, { vpc }: WorkloadRules, address: string): boolean {
    if (classifyAddress(address) === "public" || this.#options.allowed?.(host.text, port, address)) return true;
    return vpc !== null && hasRoute(vpc, address) && isRoutable(address);
  }

  /** The addresses that may be dialled, or why none. One forbidden address forbids the name. */
  async #judge(
    uid: string,
    target: Target,
    rules: WorkloadRules,
    http?: HttpRequest,
  ): Promise<Admitted | EgressRefusal> {
    const { host, port } = target;
    const named = rules.policy.judgeName(host);
    if (!named.allowed) return refusedBy(host.text, named.rule);
    if (PORTS_REFUSED.includes(port)) return refusal(403, "port_forbidden", `Port ${port} is not reachable from here.`);
    const neighbour = await this.#options.neighbours?.find(uid, host);
    if (neighbour) return isRefusal(neighbour) ? neighbour : this.#judgeNeighbour(target, rules, neighbour, http);
    const addresses = await this.#addressesOf(uid, target);
    if (isRefusal(addresses)) return addresses;
    if (addresses.length === 0) return refusal(502, "name_not_resolved", `The name ${host.text} has no address.`);
    for (const address of addresses) {
      const verdict = rules.policy.judge({ ...destination(target, address), http });
      if (!verdict.allowed) return refusedBy(host.text, verdict.rule);
    }
    const unreachable = addresses.find((address) => !this.#isReachable(target, rules, address));
    if (unreachable !== undefined) return notReachable(host.text, rules, unreachable);
    return { target, addresses, rules };
  }

  #judgeNeighbour(
    target: Target,
    rules: WorkloadRules,
    neighbour: Neighbour,
    http?: HttpRequest,
  ): Admitted | EgressRefusal {
    const verdict = rules.policy.judge({ ...destination(target), http });
    if (!verdict.allowed) return refusedBy(target.host.text, verdict.rule);
    return doorRefusal(target.port) ?? { target, addresses: [], neighbour, rules };
  }

  async #addressesOf(uid: string, { host }: Target): Promise<string[] | EgressRefusal> {
    if (host.address) return [host.text];
    const resolve = this.#options.resolve ?? resolveName;
    const found = this.#lookups.run(uid, () => resolve(host.text));
    const unknown = refusal(502, "name_not_resolved", `The name ${host.text} cannot be resolved.`);
    return found?.catch(() => unknown) ?? TOO_MANY_LOOKUPS;
  }
}

function notReachable(host: string, { vpc }: WorkloadRules, address: string): EgressRefusal {
  const isWithdrawn = hasRoute({ routes: vpc?.withdrawn ?? [] }, address) && isRoutable(address);
  const message = isWithdrawn
    ? `${host} is in a network that VPC '${vpc?.name}' has a route to and that the operator no longer offers.`
    : `${host} is not a public address; only those are reachable from here.`;
  return refusal(403, "destination_forbidden", message);
}

const destination = ({ host, port }: Target, address?: string) =>
  ({ host, port, address: parseAddress(address ?? "") ?? undefined, transport: "tcp" }) as const;

const noSource = (gateway: string): EgressRefusal => ({
  ...refusal(
    503,
    "egress_address_missing",
    `The egress gateway '${gateway}' has no address in use that leads to this host.`,
  ),
  rule: "spec.network.egress",
});

const mayLeave = (sources: SourceAddresses | null, from: string | undefined): boolean =>
  sources === null ? from === undefined : from !== undefined && leavesFrom(sources, from);

/** Reports growth now and then; the returned function reports the rest. */
function meter(socket: Socket, report: (sentBytes: number, receivedBytes: number) => void): () => void {
  let [sent, received] = [0, 0];
  const tell = (): void => {
    const [nowSent, nowReceived] = [socket.bytesWritten, socket.bytesRead];
    if (nowSent > sent || nowReceived > received) report(nowSent - sent, nowReceived - received);
    [sent, received] = [nowSent, nowReceived];
  };
  const timer = setInterval(tell, REPORT_EVERY_MS).unref();
  return () => {
    clearInterval(timer);
    tell();
  };
}
