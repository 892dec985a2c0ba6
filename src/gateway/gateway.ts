/**
 * The inference path, straight: find the workload, admit the request, choose a revision, take an instance (held while
 * one starts), forward, tell the meter. Everything outside arrives in `deps`.
 */
import { randomUUID } from "node:crypto";
import { type IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { asGatewayError, GatewayError } from "../contract/gateway-errors.ts";
import { Sweeper } from "../lib/sweeper.ts";
import { type AdmitContext, type Admitted, admit, find, type WorkloadRoute } from "./admit.ts";
import { type GatewayCounters, gatewayCounters } from "./counters.ts";
import { cookieValue, credentialNames } from "./credentials.ts";
import type { GatewayDeps, HandledRoute, Lease, RequestRecord, Workload } from "./deps.ts";
import { type Downstream, NodeDownstream } from "./downstream.ts";
import { LaneConnection, type LaneOptions } from "./fast-lane.ts";
import { type ExchangeLimits, type ForwardContext, type ForwardOutcome, forward } from "./forward.ts";
import { brandWords, type FixedHeaders, headerRules, requestHead } from "./header-rules.ts";
import { ClientGone, hold } from "./hold.ts";
import { UpstreamPool } from "./http1/upstream-pool.ts";
import { pickRevision, STICKY_TTL_MAX_SECONDS } from "./pick-revision.ts";
import { type PlatformResponseOptions, respondError } from "./platform-response.ts";
import { answerPreflight, isPreflight } from "./preflight.ts";
import { classify, type Route } from "./route.ts";
import { Tunnel } from "./tunnel.ts";

export interface Gateway {
  /** Where a request belongs; `management` is not the gateway's to serve. */
  route(req: IncomingMessage): Route;
  request(req: IncomingMessage, res: ServerResponse, route: Route, options?: { continueExpected?: boolean }): void;
  upgrade(req: IncomingMessage, socket: Duplex, head: Buffer, route: Route): void;
  /** Serves plain requests of a fresh connection itself; `handOver` gets it, untouched, when another kind comes. */
  connection(socket: Socket, accepting: () => boolean, handOver: (socket: Socket) => void): void;
  closeIdleConnections(): void;
  /** Refuses new requests, lets running ones finish for `graceMs`, then ends them. */
  stop(graceMs?: number): Promise<void>;
}

const STOP_GRACE_MS = 10_000;

interface Context extends AdmitContext {
  counters: GatewayCounters;
  forwarding: ForwardContext;
  responding: PlatformResponseOptions;
  revisionCookieName: string;
  identityWords: string[];
  stopping: boolean;
  /** Requests being served, tunnels included. */
  running: number;
  drained: (() => void) | null;
}

export function createGateway(deps: GatewayDeps): Gateway {
  const { settings, clock } = deps;
  const rules = headerRules(settings);
  const now = (): number => performance.now();
  const sweeper = new Sweeper(settings.limits.tickMs, now);
  const pool = new UpstreamPool({ perKeyMax: settings.limits.connectionsMax, now });
  sweeper.add(pool);
  const context: Context = {
    deps,
    names: credentialNames(settings.brand),
    previewCookieName: `${rules.cookiePrefix}preview`,
    revisionCookieName: `${rules.cookiePrefix}revision`,
    identityWords: brandWords(settings.brand).map((word) => word.charAt(0).toUpperCase() + word.slice(1)),
    counters: gatewayCounters(deps.registry, { openConnections: () => pool.openCount }),
    forwarding: { pool, sweeper, rules },
    responding: { rules, clock, docsUrl: settings.docsUrl },
    stopping: false,
    running: 0,
    drained: null,
  };

  const routing = { domain: settings.domain, isCustomDomain: deps.isCustomDomain };
  const lane: Omit<LaneOptions, "accepting"> = {
    sweeper,
    route: (target, host) => classify(target, host, routing),
    takes: (route) => takesLane(deps, route),
    serve: (request, route) => void serve(context, request, route),
  };

  return {
    route: (req) => classify(req.url ?? "/", hostOf(req), routing),
    request(req, res, route, options = {}) {
      const handler = "kind" in route ? deps.handlers?.[route.kind] : undefined;
      if (handler === undefined || !("kind" in route)) {
        void serve(context, new NodeDownstream(req, res, options), route);
      } else void handOver(context, req, res, route, handler, options);
    },
    upgrade(req, socket, head, route) {
      void serve(context, upgradeDownstream(req, socket, head), route);
    },
    connection(socket, accepting, handOver) {
      new LaneConnection(socket, { ...lane, accepting }, handOver);
    },
    closeIdleConnections() {
      for (const one of sweeper) if (one instanceof LaneConnection) one.closeIfIdle();
    },
    async stop(graceMs = STOP_GRACE_MS) {
      context.stopping = true;
      for (const one of sweeper) if (one instanceof Tunnel) one.close();
      if (context.running > 0) await drained(context, graceMs);
      sweeper.stop();
    },
  };
}

/** Other rooms want Node's request and response; a trigger's path may belong to anybody. */
function takesLane(deps: GatewayDeps, route: Route): boolean {
  if ("kind" in route) return deps.handlers?.[route.kind] === undefined;
  return route.to === "preview" || route.to === "domain";
}

async function serve(context: Context, down: Downstream, route: Route): Promise<void> {
  const startedAtMs = context.deps.clock.now();
  const startedMs = performance.now();
  const requestId = requestIdOf(down);
  let fixed: FixedHeaders | null = null;
  let call: Call | null = null;
  context.running += 1;
  try {
    if (context.stopping) throw new GatewayError("SHUTTING_DOWN", undefined, { headers: { "retry-after": "1" } });
    if (route.to === "nothing" || route.to === "management") throw new GatewayError("ROUTE_NOT_FOUND");
    refuseBadFraming(down);
    const workload = await find(context, down, route);
    fixed = workload.preview?.responseHeaders ?? null;
    if (fixed !== null && isPreflight(down) && fixed.names.has("access-control-allow-origin")) {
      answerPreflight(context.forwarding.rules, down, fixed);
      finished(context);
      return;
    }
    const admitted = await admit(context, down, route, workload);
    call = { startedAtMs, startedMs, admitted, method: down.method, revision: null, heldMs: null };
    await pass(context, down, route, call, requestId);
  } catch (error) {
    refuse(context, down, call, error, { fixed, requestId });
  }
}

/** One admitted request, on its way to becoming a record. */
interface Call {
  startedAtMs: number;
  startedMs: number;
  admitted: Admitted;
  method: string;
  revision: string | null;
  heldMs: number | null;
}

async function pass(
  context: Context,
  down: Downstream,
  route: WorkloadRoute,
  call: Call,
  requestId: string,
): Promise<void> {
  const { deps, forwarding } = context;
  const { admitted } = call;
  const { workload } = admitted;
  const fixed = workload.preview?.responseHeaders ?? null;
  const limits = limitsFor(deps, down, admitted);
  const pin = choose(context, down, call);
  const lease = deps.ready(workload, call.revision) ?? (await held(context, down, call));
  try {
    const head = requestHead(forwarding.rules, {
      method: down.method,
      path: admitted.path,
      rawHeaders: down.rawHeaders,
      host: down.host,
      framing: down.bodyFraming,
      contentLength: down.contentLength,
      dropAuthorization: admitted.dropAuthorization,
      remoteAddress: down.remoteAddress,
      secure: down.secure,
      prefix: route.prefix,
      requestId,
      identity: workload.door === "api" ? identityLines(context, admitted) : "",
      fixed: workload.preview?.requestHeaders ?? null,
      upgrade: down.upgrade,
    });
    forward(forwarding, down, {
      method: down.method,
      head,
      key: `${lease.key}:${workload.door}`,
      dial: () => deps.dial(lease, workload.door),
      limits,
      fixed,
      refuse: (error) => respondError(context.responding, down, error, { fixed, requestId }),
      cookie: cookieFor(context, down, route, admitted, pin),
      done: (outcome) => {
        lease.release();
        record(context, call, outcome);
      },
    });
  } catch (error) {
    lease.release();
    throw error;
  }
}

async function held(context: Context, down: Downstream, call: Call): Promise<Lease> {
  const sinceMs = performance.now();
  try {
    return await hold(context, down, call.admitted.workload, call.revision);
  } finally {
    call.heldMs = performance.now() - sinceMs;
  }
}

/** Sets the call's revision; returns the pin that the client is to keep, if any. */
function choose({ deps, revisionCookieName }: Context, down: Downstream, call: Call): string | null {
  const plan = call.admitted.workload.revisions;
  if (plan === null) return null;
  const pinned = plan.canary === undefined ? null : cookieValue(down.header("cookie"), revisionCookieName);
  const { revision, pin } = pickRevision(plan, pinned, deps.random(), deps.clock.now());
  call.revision = revision;
  return pin;
}

function cookieFor(
  context: Context,
  down: Downstream,
  route: WorkloadRoute,
  admitted: Admitted,
  pin: string | null,
): string | null {
  const path = `Path=${route.prefix === "" ? "/" : route.prefix}; HttpOnly`;
  if (admitted.previewCookie !== null) {
    // Previews are often shown in a frame of another site, where only such a cookie is kept.
    const site = down.secure ? "SameSite=None; Secure; Partitioned" : "SameSite=Lax";
    return `${context.previewCookieName}=${admitted.previewCookie}; ${path}; ${site}`;
  }
  if (pin === null) return null;
  const maxAge = Math.min(STICKY_TTL_MAX_SECONDS, admitted.workload.revisions?.stickyTtlSeconds ?? 0);
  return `${context.revisionCookieName}=${pin}; ${path}; Max-Age=${maxAge}; SameSite=Lax${down.secure ? "; Secure" : ""}`;
}

function identityLines({ identityWords }: Context, { principal }: Admitted): string {
  if (principal === null) return "";
  let lines = "";
  for (const word of identityWords) {
    lines += `X-${word}-Subject-Id: ${headerSafe(principal.id)}\r\nX-${word}-Subject-Type: ${headerSafe(principal.type)}\r\n`;
    lines += `X-${word}-Auth-Method: ${headerSafe(principal.method)}\r\n`;
  }
  return lines;
}

const headerSafe = (text: string): string => text.replace(/[^\x20-\x7e]/g, "?").slice(0, 256);

function limitsFor(deps: GatewayDeps, down: Downstream, { workload, path }: Admitted): ExchangeLimits {
  const limits = deps.settings.limits.of[workload.preview === null ? workload.kind : "preview"];
  const fileMax = deps.settings.limits.sandboxFileMax;
  if (fileMax === null || !writesOneFile(down, workload, path)) return limits;
  if (down.contentLength > fileMax) {
    throw new GatewayError("REQUEST_ENTITY_TOO_LARGE", `One request may carry ${fileMax} bytes of a file.`);
  }
  return { ...limits, bodyMax: fileMax };
}

/** JSON and forms are taken apart in memory inside the sandbox; raw bodies are streamed and need no limit. */
function writesOneFile(down: Downstream, workload: Workload, path: string): boolean {
  if (workload.kind !== "sandbox" || workload.door !== "api" || !path.startsWith("/filesystem/")) return false;
  if (down.bodyFraming === "none") return false;
  return /^(?:application\/json|multipart\/form-data)\b/i.test(down.header("content-type") ?? "");
}

/** Node has checked the syntax; these are the readings on which two servers could still disagree. */
function refuseBadFraming(down: Downstream): void {
  const encoding = down.header("transfer-encoding");
  if (encoding !== undefined && encoding.toLowerCase() !== "chunked") {
    throw new GatewayError("BAD_REQUEST", "The only transfer encoding understood here is chunked.");
  }
  if (down.upgrade !== null && (encoding !== undefined || down.contentLength > 0)) {
    throw new GatewayError("BAD_REQUEST", "A request that switches protocols has no body.");
  }
}

function record(context: Context, call: Call, outcome: ForwardOutcome): void {
  const { error, ...rest } = outcome;
  if (error !== null) logFailure(context, call.admitted.workload, error);
  tell(context, call, { ...rest, error: error?.code ?? null });
  finished(context);
}

function tell(
  { deps, counters }: Context,
  call: Call,
  outcome: Pick<RequestRecord, "status" | "bytesIn" | "bytesOut" | "error" | "clientGone">,
): void {
  const { workload, principal } = call.admitted;
  const { revision, method, heldMs, startedAtMs } = call;
  const durationMs = performance.now() - call.startedMs;
  const told: RequestRecord = { workload, revision, principal, method, startedAtMs, durationMs, heldMs, ...outcome };
  counters.count(told);
  deps.meter(told);
}

/** Ends a request that never reached forwarding. */
function refuse(
  context: Context,
  down: Downstream,
  call: Call | null,
  thrown: unknown,
  extra: { fixed: FixedHeaders | null; requestId: string },
): void {
  if (thrown instanceof ClientGone) {
    if (call !== null) tell(context, call, { status: 0, bytesIn: 0, bytesOut: 0, error: null, clientGone: true });
  } else {
    const error = asGatewayError(thrown);
    if (error.status >= 500) logFailure(context, call?.admitted.workload ?? null, error);
    respondError(context.responding, down, error, extra);
    const outcome = { status: error.status, bytesIn: 0, bytesOut: 0, error: error.code, clientGone: false };
    if (call === null) context.counters.refused(error.code);
    else tell(context, call, outcome);
  }
  finished(context);
}

function logFailure({ deps }: Context, workload: Workload | null, error: GatewayError): void {
  const fields = { code: error.code, uid: workload?.uid, detail: error.detail, err: error.cause };
  if (error.code === "INTERNAL_ERROR") deps.log.error(fields, "the gateway failed");
  else deps.log.warn(fields, "a request to a workload failed");
}

function finished(context: Context): void {
  context.running -= 1;
  if (context.running === 0) context.drained?.();
}

function drained(context: Context, graceMs: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, graceMs);
    context.drained = () => {
      clearTimeout(timer);
      resolve();
    };
  });
}

async function handOver(
  context: Context,
  req: IncomingMessage,
  res: ServerResponse,
  route: Extract<Route, { kind: unknown }>,
  handler: (req: IncomingMessage, res: ServerResponse, route: HandledRoute) => void,
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

/** A caller's own id is kept when it is harmless, so that it can be followed through. */
function requestIdOf(down: Downstream): string {
  const given = down.header("x-request-id");
  return given !== undefined && /^[\w.:/+=-]{1,128}$/.test(given) ? given : randomUUID();
}
