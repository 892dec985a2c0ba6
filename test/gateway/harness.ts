/** A gateway on a real port in front of real servers, and clients that see every byte. */

import { once } from "node:events";
import { createServer, type Server, type ServerOptions } from "node:http";
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from "node:net";
import { mock, type TestContext, test } from "node:test";
import { Registry } from "prom-client";
import { type WorkloadKind, workloadLabel } from "../../src/contract/addresses.ts";
import type {
  GatewayDeps,
  InstanceLease,
  PreviewRules,
  RequestRecord,
  Target,
  Workload,
} from "../../src/gateway/deps.ts";
import type { ExchangeLimits } from "../../src/gateway/forward.ts";
import { createGateway, type Gateway } from "../../src/gateway/gateway.ts";
import { DEFAULT_LIMITS, type GatewayLimits } from "../../src/gateway/limits.ts";
import { attachGateway, SERVER_OPTIONS } from "../../src/http/attach.ts";
import type { PathPages } from "../../src/http/page-rules.ts";
import { numberOfProxies } from "../../src/lib/network/proxies.ts";
import { OWNER, peerChannel } from "../peer-channel.ts";

export interface TestGateway extends AsyncDisposable {
  port: number;
  url: string;
  gateway: Gateway;
  server: Server;
  registry: Registry;
  /** Told once per finished request. */
  records: RequestRecord[];
  /** Leases taken and not given back. */
  leases: number;
  /** The log lines of all requests. */
  answered: Record<string, unknown>[];
  /** Failures that were logged. */
  logged: { fields: Record<string, unknown>; sentence: string }[];
  nextRecord(): Promise<RequestRecord>;
}

export interface TestGatewayOptions {
  /** Port of the server behind every workload. */
  upstream: number;
  workloads?: Partial<Workload>[];
  limits?: Partial<GatewayLimits>;
  /** Applied to every kind. */
  exchange?: Partial<ExchangeLimits>;
  deps?: Partial<GatewayDeps>;
  domain?: string;
  trustProxy?: boolean;
  pathPages?: PathPages;
  isLoopback?: boolean;
  consoleHost?: string;
  fastLane?: boolean;
  server?: ServerOptions;
}

const TICK_MS = 20;

export const AUTH = "X-Service-Authorization: Bearer good\r\n";

export function workload(patch: Partial<Workload> = {}): Workload {
  return {
    kind: "agent",
    uid: "uid-1",
    workspace: "ws",
    name: "a",
    public: false,
    enabled: true,
    revisions: null,
    door: 80,
    triggers: [],
    preview: null,
    elsewhere: null,
    ...patch,
  };
}

export function preview(patch: Partial<PreviewRules> = {}): PreviewRules {
  return {
    id: "p",
    public: true,
    requestHeaders: null,
    responseHeaders: null,
    untilMs: Number.POSITIVE_INFINITY,
    checkToken: (token) => token === "tok",
    ...patch,
  };
}

export type Start = (options: TestGatewayOptions) => Promise<TestGateway>;

/** A server that hands the request to the workload's node must be told apart from that node by nothing but speed. */
export function inEveryLane(name: string, body: (start: Start, t: TestContext) => Promise<void>): void {
  inBothLanes(name, body);
  test(`${name} (handed on)`, (t) => body(startHandingGateway, t));
}

/** The fast lane and Node's own server must be told apart by nothing but speed. */
export function inBothLanes(name: string, body: (start: Start, t: TestContext) => Promise<void>): void {
  test(`${name} (fast lane)`, (t) => body((options) => startTestGateway({ ...options, fastLane: true }), t));
  test(`${name} (node:http)`, (t) => body((options) => startTestGateway({ ...options, fastLane: false }), t));
}

export async function startTestGateway(options: TestGatewayOptions): Promise<TestGateway> {
  const workloads = (options.workloads ?? [{}]).map((patch) => workload(patch));
  const registry = new Registry();
  const waiting: ((record: RequestRecord) => void)[] = [];
  const running: TestGateway = {
    port: 0,
    url: "",
    registry,
    records: [],
    leases: 0,
    answered: [],
    logged: [],
    nextRecord: () => new Promise((resolve) => waiting.push(resolve)),
  } as unknown as TestGateway;
  const lease = (found: Workload, revision: string | null): InstanceLease => {
    running.leases += 1;
    return {
      key: `${found.uid}/${revision}`,
      release: () => {
        running.leases -= 1;
      },
    };
  };
  const deps: GatewayDeps = {
    settings: {
      brand: "berth",
      domain: options.domain,
      proxies: numberOfProxies(options.trustProxy ? 1 : 0),
      pathPages: options.pathPages ?? "sandboxed",
      isLoopback: options.isLoopback ?? false,
      consoleHost: options.consoleHost,
      docsUrl: "http://docs.test/gateway",
      limits: limitsFrom(options),
    },
    clock: { now: () => Date.now() },
    log: {
      debug: (fields) => running.answered.push(fields),
      warn: (fields, sentence) => running.logged.push({ fields, sentence }),
      error: (fields, sentence) => running.logged.push({ fields, sentence }),
    },
    registry,
    random: Math.random,
    isCustomDomain: (host) => host === "shop.example",
    authenticate: (token) =>
      token === "good" || token === "foreign" ? { id: token, type: "user", method: "api_key" } : null,
    authorize: (principal) => principal.id === "good",
    stillAllowed: async (token) => token === "good",
    mayReadLogs: (principal) => principal.id === "good",
    issuer: () => "http://platform.test",
    resolve: (target) => find(workloads, target),
    ready: lease,
    rejoin: (found, key) => (key.startsWith(`${found.uid}/`) ? { ...lease(found, null), key, revision: null } : null),
    wake: async (found, revision) => lease(found, revision),
    dial: () => dial(options.upstream),
    keepRequest: async () => false,
    meter: (record) => {
      running.records.push(record);
      waiting.shift()?.(record);
    },
    ...options.deps,
  };
  running.gateway = createGateway(deps);
  running.server = createServer({ ...SERVER_OPTIONS, ...options.server });
  attachGateway(running.server, running.gateway, { request: (_, res) => res.end("management") }, options);
  running.port = await listen(running.server);
  running.url = `http://127.0.0.1:${running.port}`;
  running[Symbol.asyncDispose] = async () => {
    running.server.close();
    running.server.closeAllConnections();
    await running.gateway.stop(0);
  };
  return running;
}

const IGNORING = { debug: () => {}, warn: () => {}, error: () => {} };

/** Two servers: the one with the port of the answer hands every request to the other, whose gateway it is. */
export async function startHandingGateway(options: TestGatewayOptions): Promise<TestGateway> {
  const owner = await startTestGateway({ ...options, fastLane: true });
  const channel = await peerChannel((socket) => owner.server.emit("connection", socket));
  const front = await startTestGateway({
    ...options,
    workloads: (options.workloads ?? [{}]).map((patch) => ({ ...patch, elsewhere: OWNER })),
    deps: {
      // What the front answers itself belongs to the same log.
      log: { ...IGNORING, debug: (fields) => "node" in fields || owner.answered.push(fields) },
      ...options.deps,
      peers: { dial: channel.peers.dial, replay: (_node, asked) => owner.gateway.replay(asked) },
    },
  });
  const close = owner[Symbol.asyncDispose];
  return Object.assign(owner, {
    port: front.port,
    url: front.url,
    async [Symbol.asyncDispose]() {
      await front[Symbol.asyncDispose]();
      await close();
      await channel.stop();
    },
  });
}

function limitsFrom({ limits, exchange }: TestGatewayOptions): GatewayLimits {
  const all = { ...DEFAULT_LIMITS, tickMs: TICK_MS, ...limits };
  const of = Object.fromEntries(
    Object.entries(all.of).map(([kind, each]) => [kind, { ...each, ...exchange }]),
  ) as GatewayLimits["of"];
  return { ...all, of };
}

function find(workloads: Workload[], target: Target): Workload | null {
  const named = (kind: WorkloadKind, workspace: string, name: string): Workload | undefined =>
    workloads.find((one) => one.kind === kind && one.workspace === workspace && one.name === name);
  switch (target.by) {
    case "name":
      return named(target.kind, target.workspace, target.name) ?? null;
    case "label":
      return workloads.find((one) => workloadLabel(one.kind, one) === target.label) ?? null;
    case "preview":
      return workloads.find((one) => one.preview?.id === target.id) ?? null;
    case "domain":
      return target.host === "shop.example" ? (workloads[0] ?? null) : null;
    case "internal":
      return null;
    case "uid":
      return workloads.find((one) => one.uid === target.uid) ?? null;
    case "trigger":
      return target.path.startsWith("/hook") ? (workloads[0] ?? null) : null;
  }
}

/** `from`: another of this machine's addresses, such as 127.0.0.2. */
export async function dial(port: number, from = "127.0.0.1"): Promise<Socket> {
  const socket = connect({ port, host: "127.0.0.1", localAddress: from });
  await once(socket, "connect");
  return socket;
}

export async function listen(server: {
  listen(port: number, host: string): unknown;
  address(): unknown;
}): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server as unknown as Server, "listening");
  return (server.address() as AddressInfo).port;
}

/** A server that does whatever the test says with each raw connection. */
export interface RawUpstream extends AsyncDisposable {
  port: number;
  connections: Socket[];
  /** Everything received, by connection. */
  received: string[];
}

export async function rawUpstream(
  serve: (socket: Socket, received: () => string, index: number) => void,
): Promise<RawUpstream> {
  const connections: Socket[] = [];
  const received: string[] = [];
  const server = createTcpServer({ allowHalfOpen: true }, (socket) => {
    const index = connections.push(socket) - 1;
    received[index] = "";
    socket.on("error", () => {});
    socket.on("data", (chunk) => {
      received[index] += chunk.toString("latin1");
    });
    serve(socket, () => received[index] ?? "", index);
  });
  const port = await listen(server);
  return {
    port,
    connections,
    received,
    async [Symbol.asyncDispose]() {
      for (const socket of connections) socket.destroy();
      server.close();
    },
  };
}

/** Answers every complete request head with the same bytes. */
export const answering =
  (response: string | ((head: string) => string | null)) =>
  (socket: Socket, received: () => string): void => {
    let seen = 0;
    socket.on("data", () => {
      for (let end = received().indexOf("\r\n\r\n", seen); end >= 0; end = received().indexOf("\r\n\r\n", seen)) {
        const head = received().slice(seen, end);
        seen = end + 4;
        const bytes = typeof response === "string" ? response : response(head);
        if (bytes !== null) socket.write(bytes, "latin1");
      }
    });
  };

export const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/** A client that writes and reads raw bytes. */
export class RawClient {
  readonly socket: Socket;
  received = "";
  ended = false;
  closed = false;
  #waiters = new Set<() => void>();

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on("data", (chunk) => {
      this.received += chunk.toString("latin1");
      this.#wake();
    });
    socket.on("end", () => {
      this.ended = true;
      this.#wake();
    });
    socket.on("close", () => {
      this.closed = true;
      this.#wake();
    });
    socket.on("error", () => {});
  }

  static async to(port: number, from?: string): Promise<RawClient> {
    return new RawClient(await dial(port, from));
  }

  write(text: string): this {
    this.socket.write(text, "latin1");
    return this;
  }

  /** Resolves with everything received, once it satisfies the condition. */
  async until(condition: (received: string) => boolean): Promise<string> {
    while (!condition(this.received)) {
      if (this.closed) throw new Error(`closed before the condition held; received: ${this.received.slice(0, 2000)}`);
      await new Promise<void>((resolve) => this.#waiters.add(resolve));
    }
    return this.received;
  }

  /** Everything until the other side ends. */
  async end(): Promise<string> {
    while (!this.ended && !this.closed) await new Promise<void>((resolve) => this.#waiters.add(resolve));
    return this.received;
  }

  [Symbol.dispose](): void {
    this.socket.destroy();
  }

  #wake(): void {
    const waiters = [...this.#waiters];
    this.#waiters.clear();
    for (const wake of waiters) wake();
  }
}

/** One request on its own connection; returns the whole raw response. */
export async function exchange(port: number, request: string): Promise<string> {
  using client = await RawClient.to(port);
  client.write(request);
  return await client.end();
}

export interface HeldClock extends Disposable {
  pass(ms: number): Promise<void>;
}

/** The gateway's clock stands until it is put forward: a long silence takes no time, and a busy machine is no silence. */
export function heldClock(): HeldClock {
  let nowMs = performance.now();
  const { mock: held } = mock.method(performance, "now", () => nowMs);
  return {
    async pass(ms) {
      nowMs += ms;
      // Behind the next look of the gateway at all that runs.
      await new Promise((resolve) => setTimeout(resolve, 2 * TICK_MS));
    },
    [Symbol.dispose]: () => held.restore(),
  };
}

/** Far longer than anything takes, also on a busy machine: what waits in vain fails. */
const PATIENCE_MS = 90_000;

/** Waits for a state that no event announces. */
export async function eventually(condition: () => boolean, what: string): Promise<void> {
  for (const giveUp = Date.now() + PATIENCE_MS; Date.now() < giveUp; ) {
    if (condition()) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error(`never happened: ${what}`);
}
