/**
 * Outbound rules of workloads that have a network of their own. A workload without rules is in the packet filter's set
 * `free` and goes straight to the outside. From all others the filter lets nothing pass but questions for names, which
 * the platform's name server judges, and TCP to ports 80 and 443, which is led to the platform's egress proxy. An address
 * is not free until its workload is known and its rules are read; after a start of the server no address is.
 */
import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { parseHost } from "../../../../lib/network/egress/host.ts";
import type { RulesSource } from "../../../../lib/network/egress/workload-rules.ts";
import type { TransparentPort } from "../../../egress/egress-proxy.ts";

export interface GuardOptions {
  rules: RulesSource;
  /** Serves a connection that a workload made to such a port of any host. */
  serve(uid: string, port: TransparentPort, socket: Socket): void;
  onError(error: unknown): void;
}

/** Changes the set `free` of the packet filter. */
export type ChangeFree = (change: "add" | "delete", address: string) => Promise<void>;

export class NatGuard {
  readonly #options: GuardOptions;
  readonly #changeFree: ChangeFree;
  readonly #owners = new Map<string, string>();
  readonly #free = new Set<string>();
  readonly #listeners: Server[] = [];
  readonly #unsubscribe: () => void;
  #turn: Promise<void> = Promise.resolve();

  constructor(options: GuardOptions, changeFree: ChangeFree) {
    this.#options = options;
    this.#changeFree = changeFree;
    this.#unsubscribe = options.rules.onChange((uid) => {
      for (const [address, owner] of this.#owners) if (owner === uid) this.#look(address);
    });
  }

  /** Listens for connections that the packet filter leads here; returns the port. */
  async listen(gateway: string, port: TransparentPort): Promise<number> {
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      const uid = this.#owners.get(socket.remoteAddress ?? "");
      if (uid === undefined) socket.destroy();
      else this.#options.serve(uid, port, socket);
    });
    server.listen(0, gateway);
    await once(server, "listening");
    this.#listeners.push(server.unref());
    return (server.address() as AddressInfo).port;
  }

  /** From now on the address is this workload's. */
  own(address: string, uid: string): void {
    this.#owners.set(address, uid);
    this.#look(address);
  }

  /** The address is about to get another workload: it is not free when this resolves. */
  async disown(address: string): Promise<void> {
    this.#owners.delete(address);
    await this.#queue(address);
  }

  /** Whether a workload may ask for a name. */
  async mayResolve(address: string, name: string): Promise<boolean> {
    const uid = this.#owners.get(address);
    if (uid === undefined) return false;
    const { policy } = await this.#options.rules.of(uid);
    const host = parseHost(name);
    return policy.open || (host !== null && policy.judgeName(host).allowed);
  }

  isFree(address: string): boolean {
    return this.#free.has(address);
  }

  async stop(): Promise<void> {
    this.#unsubscribe();
    for (const server of this.#listeners) server.close();
    await this.#turn;
  }

  #look(address: string): void {
    this.#queue(address).catch(this.#options.onError);
  }

  /** One change after the other: the last one is judged by the newest rules. */
  #queue(address: string): Promise<void> {
    const next = this.#turn.then(() => this.#settle(address));
    this.#turn = next.catch(() => {}); // the caller gets the error
    return next;
  }

  async #settle(address: string): Promise<void> {
    const uid = this.#owners.get(address);
    const rules = uid === undefined ? null : await this.#options.rules.of(uid).catch(() => null);
    const isFree = rules?.policy.open === true && !rules.routes.any && rules.sources === null;
    if (isFree === this.#free.has(address)) return;
    await this.#changeFree(isFree ? "add" : "delete", address);
    if (isFree) this.#free.add(address);
    else this.#free.delete(address);
  }
}
