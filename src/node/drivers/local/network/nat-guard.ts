/**
 * Outbound rules of workloads that have a network of their own. A workload without rules goes straight to the outside,
 * from the addresses of its egress gateway if it has one. From all others the filter lets nothing pass but questions for names, which
 * the platform's name server judges, and TCP to ports 80 and 443, which is led to the platform's egress proxy. An address
 * is not free until its workload is known and its rules are read; after a start of the server no address is.
 */
import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import type { Bandwidth } from "../../../../lib/network/egress/bandwidth.ts";
import { parseHost } from "../../../../lib/network/egress/host.ts";
import type { RulesSource } from "../../../../lib/network/egress/workload-rules.ts";
import type { WorkloadVpc } from "../../../../lib/network/egress/workload-vpc.ts";
import type { TransparentPort } from "../../../egress/egress-proxy.ts";
import type { Neighbours } from "../../../egress/neighbours.ts";
import { isRefusal } from "../../../egress/refusal.ts";
import type { HostAddresses } from "./nat-addresses.ts";
import { CLOSED, type NatFilter } from "./nat-filter.ts";
import type { Attachment, NatShaper } from "./nat-shaper.ts";

export interface GuardOptions {
  rules: RulesSource;
  /** Other workloads of a workload's VPC; absent = none. */
  neighbours?: Neighbours | undefined;
  /** Serves a connection that a workload made to such a port of any host. */
  serve(uid: string, port: TransparentPort, socket: Socket): void;
  onError(error: unknown): void;
}

/** A workload that sleeps is woken by packets of other workloads after at most this long. */
const LOOK_EVERY_MS = 3000;

interface Owner {
  uid: string;
  host: HostAddresses;
  at: Pick<Attachment, "link" | "pid">;
  /** The workspace; null until the rules are read. */
  tenant: string | null;
}

export class NatGuard {
  readonly #options: GuardOptions;
  readonly #filter: Pick<NatFilter, "set" | "talking" | "forgetConnections">;
  readonly #shaper: NatShaper;
  readonly #timer: NodeJS.Timeout;
  /** By IPv4 address. */
  readonly #owners = new Map<string, Owner>();
  /** By uid of the workload. */
  readonly #hosts = new Map<string, HostAddresses>();
  readonly #free = new Set<string>();
  readonly #listeners: Server[] = [];
  readonly #unsubscribe: () => void;
  #turn: Promise<void> = Promise.resolve();

  constructor(
    options: GuardOptions,
    filter: Pick<NatFilter, "set" | "talking" | "forgetConnections">,
    shaper: NatShaper,
  ) {
    this.#options = options;
    this.#filter = filter;
    this.#shaper = shaper;
    this.#timer = setInterval(() => void this.#lookAtTalk().catch(options.onError), LOOK_EVERY_MS).unref();
    this.#unsubscribe = options.rules.onChange((uid) => {
      for (const owner of this.#owners.values()) if (owner.uid === uid) this.#look(owner.host);
    });
  }

  /** Listens for connections that the packet filter leads here; returns the port. */
  async listen(gateway: string, port: TransparentPort): Promise<number> {
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      const uid = this.#owners.get(socket.remoteAddress ?? "")?.uid;
      if (uid === undefined) socket.destroy();
      else this.#options.serve(uid, port, socket);
    });
    server.listen(0, gateway);
    await once(server, "listening");
    this.#listeners.push(server.unref());
    return (server.address() as AddressInfo).port;
  }

  /** From now on the address is this workload's. */
  own(host: HostAddresses, uid: string, at: Owner["at"]): void {
    this.#owners.set(host.ipv4, { uid, host, at, tenant: null });
    this.#hosts.set(uid, host);
    this.#look(host);
  }

  /** The address is about to get another workload: it is not free when this resolves. */
  async disown(host: HostAddresses): Promise<void> {
    const before = this.#owners.get(host.ipv4);
    this.#owners.delete(host.ipv4);
    if (before && this.#hosts.get(before.uid)?.ipv4 === host.ipv4) this.#hosts.delete(before.uid);
    await this.#queue(host);
    if (before) await this.#filter.forgetConnections(host);
  }

  /** This workload is gone. A rule that stays behind is replaced when the address is used again. */
  async release(host: HostAddresses, uid: string): Promise<void> {
    if (this.#owners.get(host.ipv4)?.uid === uid) await this.disown(host).catch(this.#options.onError);
  }

  /** Whether a workload may ask for a name. */
  async mayResolve(address: string, name: string): Promise<boolean> {
    const uid = this.#owners.get(address)?.uid;
    if (uid === undefined) return false;
    const { policy } = await this.#options.rules.of(uid);
    const host = parseHost(name);
    return policy.open || (host !== null && policy.judgeName(host).allowed);
  }

  /**
   * The addresses of the workload that has the name in the VPC of the workload at `asker`. Null: the name is not one of
   * the VPC's. "nobody": no workload that the asker reaches has the name.
   */
  async neighbourAt(asker: string, name: string): Promise<HostAddresses | "nobody" | null> {
    const uid = this.#owners.get(asker)?.uid;
    const host = parseHost(name);
    const found = uid === undefined || !host ? null : await this.#options.neighbours?.find(uid, host);
    if (!found) return null;
    if (isRefusal(found)) return "nobody";
    found.use()(); // whoever asks for a name is about to connect
    return this.#hosts.get(found.uid) ?? "nobody";
  }

  /** The workspace of the workload; the address itself where nobody is known to own it. */
  tenantOf(address: string): string {
    return this.#owners.get(address)?.tenant ?? address;
  }

  isFree(address: string): boolean {
    return this.#free.has(address);
  }

  async stop(): Promise<void> {
    this.#unsubscribe();
    clearInterval(this.#timer);
    for (const server of this.#listeners) server.close();
    await this.#turn;
  }

  /** Packets between workloads do not pass the server, so the filter tells who got some. */
  async #lookAtTalk(): Promise<void> {
    const talking = new Set(await this.#filter.talking());
    if (talking.size === 0) return;
    for (const { uid, host } of this.#owners.values())
      if (talking.has(host.ipv4) || talking.has(host.ipv6 ?? "")) await this.#options.neighbours?.touch(uid);
  }

  #look(host: HostAddresses): void {
    this.#queue(host).catch(this.#options.onError);
  }

  /** One change after the other: the last one is judged by the newest rules. */
  #queue(host: HostAddresses): Promise<void> {
    const next = this.#turn.then(() => this.#settle(host));
    this.#turn = next.catch(() => {}); // the caller gets the error
    return next;
  }

  async #settle(host: HostAddresses): Promise<void> {
    const owner = this.#owners.get(host.ipv4);
    if (!owner) this.#shaper.forget(host.ipv4);
    const rules = owner ? await this.#options.rules.of(owner.uid).catch(() => null) : null;
    if (owner) owner.tenant = rules?.owner?.workspace ?? null;
    const isShaped = !owner || !rules || (await this.#shape(owner, rules.bandwidth));
    const isFree = rules?.policy.open === true && !rules.routes.any && isShaped;
    const vpc = rules && reaching(rules.vpc);
    await this.#filter.set(host, isFree ? { isOpen: true, sources: rules.sources, vpc } : { ...CLOSED, vpc });
    if (isFree) this.#free.add(host.ipv4);
    else this.#free.delete(host.ipv4);
  }

  /** A workload whose limit the machine cannot hold goes through the proxy, which can. */
  #shape({ host, at }: Owner, bandwidth: Bandwidth | null): Promise<boolean> {
    return this.#shaper.set({ ...at, ipv4: host.ipv4 }, bandwidth).then(
      () => true,
      (error: unknown) => {
        this.#options.onError(error);
        return bandwidth === null;
      },
    );
  }
}

/** A VPC without settings gives its workloads nothing. */
const reaching = (vpc: WorkloadVpc | null): WorkloadVpc | null =>
  vpc && (vpc.internal || vpc.routes.length > 0) ? vpc : null;
