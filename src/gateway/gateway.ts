/** The gateway as one object: made from what arrives in `deps`, fed with requests and connections, stopped once. */
import { type IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { Sweeper } from "../lib/sweeper.ts";
import { find } from "./admit.ts";
import { answerClientError } from "./client-error.ts";
import { gatewayCounters } from "./counters.ts";
import { credentialNames } from "./credentials.ts";
import type { GatewayDeps, Handler } from "./deps.ts";
import { type Downstream, NodeDownstream } from "./downstream.ts";
import { LaneConnection, type LaneOptions } from "./fast-lane.ts";
import { brandWords, capitalised, headerRules } from "./header-rules.ts";
import { UpstreamPool } from "./http1/upstream-pool.ts";
import { classify, type Route } from "./route.ts";
import { finished, refuse, requestIdOf, type ServeContext, serve } from "./serve.ts";
import { Tunnel } from "./tunnel.ts";

export interface Gateway {
  /** Where a request belongs; `management` is not the gateway's to serve. */
  route(req: IncomingMessage): Route;
  request(req: IncomingMessage, res: ServerResponse, route: Route, options?: { continueExpected?: boolean }): void;
  upgrade(req: IncomingMessage, socket: Duplex, head: Buffer, route: Route): void;
  /** Serves plain requests of a fresh connection itself; `handOver` gets it, untouched, when another kind comes. */
  connection(socket: Socket, handOver: (socket: Socket) => void): void;
  closeIdleConnections(): void;
  /** For what Node's server could not read as a request. */
  clientError(error: NodeJS.ErrnoException, socket: Duplex): void;
  /** Refuses new requests, lets running ones finish for `graceMs`, then ends them. */
  stop(graceMs?: number): Promise<void>;
}

const STOP_GRACE_MS = 10_000;

export function createGateway(deps: GatewayDeps): Gateway {
  const { settings, clock } = deps;
  const rules = headerRules(settings);
  const now = (): number => performance.now();
  const sweeper = new Sweeper(settings.limits.tickMs, now);
  const pool = new UpstreamPool({ perKeyMax: settings.limits.connectionsMax, now });
  sweeper.add(pool);
  const context: ServeContext = {
    deps,
    names: credentialNames(settings.brand),
    cookies: { preview: `${rules.cookiePrefix}preview`, revision: `${rules.cookiePrefix}revision` },
    identityWords: brandWords(settings.brand).map(capitalised),
    counters: gatewayCounters(deps.registry, { openConnections: () => pool.openCount }),
    forwarding: { pool, sweeper, rules },
    responding: { rules, clock, docsUrl: settings.docsUrl },
    stopping: false,
    running: 0,
    drained: null,
  };

  const routing = { domain: settings.domain, isCustomDomain: deps.isCustomDomain };
  const accepting = (): boolean => !context.stopping;
  const lane: LaneOptions = {
    sweeper,
    accepting,
    route: (target, host) => classify(target, host, routing),
    takes: (route) => takesLane(deps, route),
    serve: (request, route) => void serve(context, request, route),
  };

  return {
    route: (req) => classify(req.url ?? "/", hostOf(req), routing),
    request(req, res, route, options = {}) {
      const handler = "kind" in route ? deps.handlers?.[route.kind] : undefined;
      if (handler === undefined || !("kind" in route)) {
        void serve(context, new NodeDownstream(req, res, { ...options, accepting }), route);
      } else void handOver(context, req, res, route, handler, options);
    },
    upgrade(req, socket, head, route) {
      void serve(context, upgradeDownstream(req, socket, head), route);
    },
    connection(socket, handOver) {
      new LaneConnection(socket, lane, handOver);
    },
    closeIdleConnections() {
      for (const one of sweeper) if (one instanceof LaneConnection) one.closeIfIdle();
    },
    clientError: (error, socket) => answerClientError(context.responding, error, socket),
    async stop(graceMs = STOP_GRACE_MS) {
      context.stopping = true;
      for (const one of sweeper) if (one instanceof Tunnel) one.close();
      if (context.running > 0) await drained(context, graceMs);
      sweeper.stop();
    },
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

/** Other rooms want Node's request and response; a trigger's path may belong to anybody. */
function takesLane(deps: GatewayDeps, route: Route): boolean {
  if ("kind" in route) return deps.handlers?.[route.kind] === undefined;
  return route.to === "preview" || route.to === "domain";
}

async function handOver(
  context: ServeContext,
  req: IncomingMessage,
  res: ServerResponse,
  route: Extract<Route, { kind: unknown }>,
  handler: Handler,
  options: { continueExpected?: boolean },
): Promise<void> {
  if (options.continueExpected) res.writeContinue();
  const { kind, prefix, path } = route;
  if (route.to === "workload") {
    handler(req, res, { kind, prefix, path, workspace: route.workspace, name: route.name });
    return;
  }
  context.running += 1;
  const down = new NodeDownstream(req, res);
  try {
    const workload = await find(context, down, route);
    handler(req, res, { kind, prefix, path, workspace: workload.workspace, name: workload.name });
    finished(context);
  } catch (error) {
    refuse(context, down, null, error, { fixed: null, requestId: requestIdOf(down) });
  }
}

/** A response object for a connection that Node has let go of: errors and refusals go out through it. */
function upgradeDownstream(req: IncomingMessage, socket: Duplex, head: Buffer): Downstream {
  const res = new ServerResponse(req);
  res.shouldKeepAlive = false;
  res.assignSocket(socket as Socket);
  res.on("finish", () => {
    res.detachSocket(socket as Socket);
    socket.end();
  });
  // Node no longer listens to this connection: without this, a client's reset would end the process.
  socket.on("error", () => socket.destroy());
  return new NodeDownstream(req, res, { upgradeHead: head });
}

const hostOf = (req: IncomingMessage): string | undefined => {
  const authority = req.headers[":authority"];
  return req.headers.host ?? (typeof authority === "string" ? authority : undefined);
};
