/** The gateway as one object: created from `deps`, fed with requests and connections, stopped once. */

import { randomBytes } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { GatewayError } from "../contract/gateway-errors.ts";
import { hasTriggers } from "../contract/triggers.ts";
import type { InferenceDoor, PlainManagement } from "../http/attach.ts";
import { answerClientError } from "../http/client-error.ts";
import { Connections } from "../http/connections.ts";
import { type Downstream, NodeDownstream } from "../http/downstream.ts";
import { LaneConnection, type LaneOptions } from "../http/fast-lane.ts";
import { brandWords, capitalised, headerRules } from "../http/header-rules.ts";
import { UpstreamPool } from "../http/http1/upstream-pool.ts";
import { Http2WebSocket } from "../http/http2/web-socket.ts";
import type { LaneRequest } from "../http/lane-request.ts";
import { Newcomers } from "../http/newcomers.ts";
import { OpenRights, type Revocable } from "../http/open-rights.ts";
import { requestIdOf } from "../http/request-id.ts";
import type { WorkloadRoute } from "../http/route.ts";
import { classify, type Route } from "../http/route.ts";
import { Tunnel } from "../http/tunnel.ts";
import { MemoryPressure } from "../lib/memory-pressure.ts";
import { ServerResponse } from "../lib/network/node-http.ts";
import { Sweeper } from "../lib/sweeper.ts";
import { targetOf } from "./admit.ts";
import { finished, requireRoom, type ServeContext } from "./call.ts";
import { admitConsole } from "./console-origin.ts";
import { gatewayCounters } from "./counters.ts";
import { credentialNames } from "./credentials.ts";
import type { GatewayDeps, Passage, Replay, Replayed, StoredRequest, Workload } from "./deps.ts";
import { isForwardedAtEdge } from "./edge-kinds.ts";
import { WorkloadExchange } from "./forward.ts";
import { handOn, PEER_IDLE_MAX_MS } from "./hand-on.ts";
import { enter } from "./http-trigger.ts";
import { TaskIds } from "./mcp/task-ids.ts";
import { OpenExchanges } from "./open-exchanges.ts";
import { challenge } from "./protected-resource.ts";
import { compose, type PlatformRequest, replay } from "./replay.ts";
import { refuse, respondMetadata, serve } from "./serve.ts";
import type { GatewayTotals } from "./totals.ts";

export interface Gateway extends InferenceDoor {
  /** Makes a stored request that the platform itself sends to a workload. */
  compose(request: PlatformRequest): StoredRequest;
  /** Delivers a stored request. */
  replay(asked: Replay): Promise<Replayed>;
  /** What this process has counted since its start. */
  totals(): GatewayTotals;
  /** Hands a request of the management API or the S3 door, whose body has not been read, to another node. */
  handOn(req: IncomingMessage, res: ServerResponse, node: string, options?: { continueExpected?: boolean }): void;
}

const STOP_GRACE_MS = 10_000;
const TASK_KEY_BYTES = 32;

export function createGateway(deps: GatewayDeps): Gateway {
  const { settings, clock } = deps;
  const rules = headerRules(settings);
  const now = (): number => performance.now();
  const sweeper = new Sweeper(settings.limits.tickMs, now);
  const newcomers = new Newcomers(settings.limits.newcomersMax);
  const connections = new Connections(settings.limits.clientsMax, settings.proxies);
  const pool = new UpstreamPool({ perKeyMax: settings.limits.connectionsMax, now });
  sweeper.add(pool);
  const peerPool = new UpstreamPool({ perKeyMax: settings.limits.heldMax, idleMaxMs: PEER_IDLE_MAX_MS, now });
  sweeper.add(peerPool);
  const rights = new OpenRights(() => revocableIn(sweeper), settings.limits.rightsMs);
  const unsubscribe = deps.onRightsChange?.((change) => rights.changed(change));
  const open = new OpenExchanges(settings.limits.openMax);
  const context: ServeContext = {
    deps,
    names: credentialNames(settings.brand),
    cookies: { preview: `${rules.cookiePrefix}preview`, revision: `${rules.cookiePrefix}revision` },
    identityWords: brandWords(settings.brand).map(capitalised),
    counters: gatewayCounters(deps.registry, {
      openConnections: () => pool.openCount,
      clientConnections: () => connections.open,
      openRequests: () => open.total,
      ...(deps.edgeTotals && { edgeTotals: deps.edgeTotals }),
    }),
    open,
    memory: new MemoryPressure(now, deps.memoryUse),
    forwarding: { pool, sweeper, rules },
    handing: { pool: peerPool, sweeper, rules },
    responding: { rules, clock, docsUrl: settings.docsUrl },
    tasks: new TaskIds(deps.taskKey ?? randomBytes(TASK_KEY_BYTES)),
    within: (down, route, origin) => serve(context, down, route, null, origin),
    stopping: false,
    retiring: false,
    running: 0,
    drained: null,
  };

  const { domain, consoleHost, publicHost, isLoopback } = settings;
  const routing = { domain, consoleHost, publicHost, isLoopback, isCustomDomain: deps.isCustomDomain };
  const accepting = (): boolean => !context.stopping && !context.retiring;
  const laneOf = (management: PlainManagement | undefined): LaneOptions => ({
    sweeper,
    accepting,
    headMs: settings.limits.headMs,
    arrived: (socket) => newcomers.arrived(socket),
    route: (target, host) => classify(target, host, routing),
    serverOf(head, route) {
      if (isHandedOn(deps, route)) return (request) => passOn(context, request);
      if (route.to === "management") return running(context, management?.(head) ?? null);
      return takesLane(deps, route) ? (request) => void answer(context, request, route) : null;
    },
  });

  return {
    newcomers,
    connections,
    route: (req) => classify(req.url ?? "/", hostOf(req), routing),
    request(req, res, route, options = {}) {
      const handler = route.to === "workload" && !hasTriggers(route.kind) ? deps.handlers?.[route.kind] : undefined;
      if (handler !== undefined && route.to === "workload") {
        // The route names the kind, so no lookup is needed.
        if (options.continueExpected) res.writeContinue();
        handler(req, res, { ...route, trigger: null });
        return;
      }
      const down = new NodeDownstream(req, res, { ...options, accepting });
      if (isHandedOn(deps, route)) passOn(context, down);
      else if (mayBeHandled(deps, route)) void handOver(context, down, req, res, route);
      else void answer(context, down, route);
    },
    upgrade(req, socket, head, route) {
      const down = upgradeDownstream(req, socket, head);
      openTunnel(context, down, route);
    },
    webSocket(req, res, route) {
      openTunnel(context, new Http2WebSocket(req, res), route);
    },
    connection(socket, handOver, management) {
      new LaneConnection(socket, laneOf(management), handOver);
    },
    giveUpIdle(take) {
      for (const one of sweeper) {
        const socket = one instanceof LaneConnection ? one.giveUpIfIdle() : null;
        if (socket !== null) take(socket);
      }
    },
    retire() {
      context.retiring = true;
    },
    closeIdleConnections() {
      for (const one of sweeper) if (one instanceof LaneConnection) one.closeIfIdle();
    },
    compose: (request) => compose(rules, request),
    replay: (asked) => replay(context, asked),
    handOn(req, res, node, options = {}) {
      const down = new NodeDownstream(req, res, { ...options, accepting });
      context.running += 1;
      handOn(context, down, node, requestIdOf(down));
    },
    totals: () => context.counters.totals(),
    clientError: (error, socket) => answerClientError(context.responding, error, socket),
    async stop(graceMs = STOP_GRACE_MS) {
      context.stopping = true;
      unsubscribe?.();
      rights.stop();
      for (const one of sweeper) if (one instanceof Tunnel) one.close();
      if (context.running > 0) await drained(context, graceMs);
      for (const one of sweeper) if (one instanceof LaneConnection) one.close();
      sweeper.stop();
    },
  };
}

function* revocableIn(sweeper: Sweeper): Generator<Revocable> {
  for (const one of sweeper) if (one instanceof Tunnel || one instanceof WorkloadExchange) yield one;
}

/** Whether this is an edge process and its owner serves all requests of this route. */
function isHandedOn({ onward }: GatewayDeps, route: Route): boolean {
  if (onward === undefined) return false;
  if ("kind" in route) return !isForwardedAtEdge(route.kind);
  return route.to === "management" || route.to === "s3" || route.to === "facade" || route.to === "nothing";
}

const passOn = (context: ServeContext, down: Downstream): void =>
  void pass(context, down, { node: context.deps.onward ?? "" });

/** Counts management requests too, so that a stopping server waits for them. */
function running(context: ServeContext, serve: ReturnType<PlainManagement>): ((request: LaneRequest) => void) | null {
  if (serve === null) return null;
  const done = (): void => finished(context);
  return (request) => {
    context.running += 1;
    void serve(request).then(done, done); // `serve` answers its own failures
  };
}

function drained(context: ServeContext, graceMs: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, graceMs);
    context.drained = () => {
      clearTimeout(timer);
      resolve();
    };
  });
}

/** Some handlers need Node's request and response objects; a trigger's path may lead to any kind. */
function takesLane(deps: GatewayDeps, route: Route): boolean {
  if ("kind" in route) return deps.handlers?.[route.kind] === undefined;
  if (route.to === "trigger") return deps.handlers === undefined;
  return route.to === "preview" || route.to === "domain" || route.to === "facade";
}

/** Façades that answer upgrades themselves, as the answerers of kinds do. */
const UPGRADED_FACADES: ReadonlySet<string> = new Set(["openai"]);

/** Whether the platform answers this address, and has no upgraded connections there. */
const isPlainOnly = ({ answerers, handlers }: GatewayDeps, route: Route): boolean =>
  (route.to === "facade" && route.port === undefined && !UPGRADED_FACADES.has(route.facade)) ||
  ("kind" in route && answerers?.[route.kind] === undefined && handlers?.[route.kind] !== undefined);

function openTunnel(context: ServeContext, down: Downstream, route: Route): void {
  if (isHandedOn(context.deps, route)) passOn(context, down);
  else if (isPlainOnly(context.deps, route)) refuseUpgrade(context, down);
  else if (route.to === "facade" || "kind" in route) void answer(context, down, route);
  else void serve(context, down, route);
}

function refuseUpgrade(context: ServeContext, down: Downstream): void {
  context.running += 1;
  const error = new GatewayError("BAD_REQUEST", "This address takes no upgraded connections: send a plain request.");
  refuse(context, down, null, error, { fixed: null, requestId: requestIdOf(down) });
}

/** Answers through a façade or the kind's answerer, otherwise through the workload. */
async function answer(context: ServeContext, down: Downstream, route: Route): Promise<void> {
  const { consoleOrigin } = context.deps;
  if (consoleOrigin !== undefined && admitConsole(context.forwarding.rules, down, consoleOrigin())) return;
  const { facades, answerers } = context.deps;
  if (route.to === "facade") {
    let passage: Passage | null = null;
    await answerHere(context, down, async () => {
      const facade = facades?.[route.facade];
      if (facade === undefined) throw new GatewayError("ROUTE_NOT_FOUND");
      passage = await facade(down, route);
    });
    return passage === null ? undefined : pass(context, down, passage);
  }
  const answerer = "kind" in route ? answerers?.[route.kind] : undefined;
  if (answerer === undefined || !("kind" in route)) return serve(context, down, route);
  return answerHere(context, down, async () => {
    // A path address names the workload; a host label must be looked up.
    const named = route.to === "workload" ? route : await context.deps.resolve(targetOf(route));
    if (named === null) throw new GatewayError("ROUTE_NOT_FOUND");
    if ("preview" in named && respondMetadata(context, down, route, named)) return;
    const { kind, prefix, path } = route;
    const { workspace, name } = named;
    await answerer(down, { kind, prefix, path, workspace, name, trigger: null }, (error) =>
      challenge(context.deps, down, route, error),
    );
  });
}

/** Serves a request of a façade as one of the platform's own. */
async function pass(context: ServeContext, down: Downstream, passage: Passage): Promise<void> {
  if (!("node" in passage)) return serve(context, passage.down, passage.route, passage.caller);
  context.running += 1;
  try {
    handOn(context, down, passage.node, requestIdOf(down));
  } catch (error) {
    refuse(context, down, null, error, { fixed: null, requestId: requestIdOf(down) });
  }
}

/** Counts a request that another module answers, and refuses it when that module throws. */
async function answerHere(context: ServeContext, down: Downstream, work: () => Promise<void>): Promise<void> {
  context.running += 1;
  try {
    requireRoom(context);
    await work();
  } catch (error) {
    refuse(context, down, null, error, { fixed: null, requestId: requestIdOf(down) });
    return;
  }
  finished(context);
}

type HandledRoute = Extract<WorkloadRoute, { to: "workload" | "label" | "trigger" }>;

function mayBeHandled(deps: GatewayDeps, route: Route): route is HandledRoute {
  if (route.to === "trigger") return deps.handlers !== undefined;
  return "kind" in route && deps.handlers?.[route.kind] !== undefined;
}

/** Passes the request to the module that serves this kind, if there is one, by the route or after a lookup. */
async function handOver(
  context: ServeContext,
  down: NodeDownstream,
  req: IncomingMessage,
  res: ServerResponse,
  route: HandledRoute,
): Promise<void> {
  const { deps } = context;
  let workload: Workload | null;
  context.running += 1;
  try {
    workload = await deps.resolve(targetOf(route));
  } catch (error) {
    refuse(context, down, null, error, { fixed: null, requestId: requestIdOf(down) });
    return;
  }
  finished(context);
  const { workspace, name, kind } = workload ?? (route.to === "workload" ? route : NOWHERE);
  const handler = kind === null ? undefined : deps.handlers?.[kind];
  if (handler === undefined || kind === null) {
    await serve(context, down, route);
    return;
  }
  const entered = workload === null ? { route, trigger: null } : enter(route, workload);
  const { prefix, path } = entered.route;
  down.sendContinue();
  handler(req, res, { kind, workspace, name, prefix, path, trigger: entered.trigger?.id ?? null });
}

const NOWHERE = { workspace: "", name: "", kind: null };

/** A response object for an upgraded connection that Node has released; errors are sent through it. */
function upgradeDownstream(req: IncomingMessage, socket: Duplex, head: Buffer): Downstream {
  const res = new ServerResponse(req);
  res.shouldKeepAlive = false;
  res.assignSocket(socket as Socket);
  res.on("finish", () => {
    res.detachSocket(socket as Socket);
    socket.end();
  });
  // Node no longer handles errors of this connection; without a listener, a client's reset would end the process.
  socket.on("error", destroyThis);
  return new NodeDownstream(req, res, { upgradeHead: head });
}

/** Refers to nothing: the connection of an idle WebSocket would keep the request and its response otherwise. */
function destroyThis(this: Duplex): void {
  this.destroy();
}

const hostOf = (req: IncomingMessage): string | undefined => {
  const authority = req.headers[":authority"];
  return req.headers.host ?? (typeof authority === "string" ? authority : undefined);
};
