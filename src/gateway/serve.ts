/** Serves one request: find, admit, choose a revision, take an instance, forward, meter. */

import { asGatewayError, GatewayError } from "../contract/gateway-errors.ts";
import type { Downstream } from "../http/downstream.ts";
import type { FixedHeaders } from "../http/header-rules.ts";
import { respond, respondError } from "../http/platform-response.ts";
import { requestIdOf } from "../http/request-id.ts";
import { portOf, type Route, type WorkloadRoute } from "../http/route.ts";
import { acceptAsync } from "./accept-async.ts";
import { type Admitted, admit, find } from "./admit.ts";
import { AdmittedRight } from "./admitted-right.ts";
import { type Call, type CallOrigin, finished, requireRoom, type ServeContext } from "./call.ts";
import { cookieValue } from "./credentials.ts";
import type { GatewayDeps, InstanceLease, KnownCaller, OwnEndpoint, RequestRecord, Workload } from "./deps.ts";
import { type ExchangeLimits, type ForwardOutcome, forward } from "./forward.ts";
import { headOf } from "./forwarded-head.ts";
import { handOn } from "./hand-on.ts";
import { ClientGone, hold } from "./hold.ts";
import { asyncTriggerOf, enter } from "./http-trigger.ts";
import { gate } from "./mcp/gate.ts";
import { type McpSession, sessionGone, sessionMarker, sessionOf, withOwnId } from "./mcp/session.ts";
import { serveVirtual } from "./mcp/virtual-server.ts";
import { answerOwn, type OwnOutcome } from "./own-answer.ts";
import { ownOrigin } from "./own-origin.ts";
import { pickRevision } from "./pick-revision.ts";
import { throughPort } from "./port-path.ts";
import { answerPreflight, isPreflight } from "./preflight.ts";
import { metadataFor } from "./protected-resource.ts";
import {
  addressOf,
  cookieFor,
  isSecure,
  limitsFor,
  refuseBadFraming,
  refuseWorkerScript,
  timeLimitFields,
} from "./request-rules.ts";

/** `known` is the caller, where a façade has found out who calls. */
export async function serve(
  context: ServeContext,
  down: Downstream,
  route: Route,
  known: KnownCaller | null = null,
  origin: CallOrigin = "client",
): Promise<void> {
  const startedAtMs = context.deps.clock.now();
  const startedMs = performance.now();
  const requestId = requestIdOf(down);
  let fixed: FixedHeaders | null = null;
  let call: Call | null = null;
  context.running += 1;
  try {
    requireRoom(context);
    if (route.to === "nothing" || route.to === "management" || route.to === "s3" || route.to === "facade")
      throw new GatewayError("ROUTE_NOT_FOUND");
    refuseBadFraming(down);
    const { route: entered, workload, trigger } = enter(route, await find(context, down, route));
    if (workload.elsewhere !== null) return handOn(context, down, workload.elsewhere, requestId);
    fixed = workload.preview?.responseHeaders ?? null;
    refuseWorkerScript(down, route.prefix);
    const own = ownOrigin(context.deps.settings, down, route, workload);
    if (own !== null) {
      respond(context.forwarding.rules, down, 307, null, "", ["Location", own, ...NOT_KEPT], null);
      finished(context);
      return;
    }
    if (fixed !== null && isPreflight(down) && fixed.names.has("access-control-allow-origin")) {
      answerPreflight(context.forwarding.rules, down, fixed);
      finished(context);
      return;
    }
    if (respondMetadata(context, down, entered, workload)) return finished(context);
    const { admitted, taken } = throughPort(
      await admit(context, down, entered, workload, known?.principal),
      portOf(route),
    );
    const prefix = entered.prefix + taken;
    const pagePrefix = route.prefix === "" ? "" : prefix;
    const { method } = down;
    const by = down.upgrade === null && asyncTriggerOf(workload, trigger, admitted.path);
    const { onward } = context.deps;
    if (onward !== undefined && (by !== false || !canServe(context, down, admitted)))
      return handOn(context, down, onward, requestId);
    const leave = context.open.enter(admitted, addressOf(context.forwarding.rules, down));
    const begun = { startedAtMs, startedMs, requestId, admitted, method, leave };
    const right = new AdmittedRight(context.deps, route, admitted, known?.again ?? null);
    call = { ...begun, right, prefix, pagePrefix, revision: null, origin, heldMs: null };
    if (by === false) await passTools(context, down, entered, call, requestId);
    else if (workload.tools || workload.servers)
      throw new GatewayError("POLICY_VIOLATION", "The tools of this server are checked: call it directly.");
    else record(context, call, await acceptAsync(context, down, call, by, requestId));
  } catch (error) {
    refuse(context, down, call, error, { fixed, requestId });
  }
}

/** Answers a request for the metadata that names the issuer of credentials; true when it did. */
export function respondMetadata(
  { deps, forwarding }: ServeContext,
  down: Downstream,
  route: WorkloadRoute,
  workload: Workload,
): boolean {
  const metadata = metadataFor(deps, down, route, workload);
  if (metadata === null) return false;
  respond(forwarding.rules, down, 200, "application/json", JSON.stringify(metadata), ANY_ORIGIN, null);
  return true;
}

/** The redirect must not be cached: programs that request the same URL are served at that URL. */
const NOT_KEPT = ["Cache-Control", "no-store", "Vary", "Sec-Fetch-Mode"];

const ANY_ORIGIN = ["Access-Control-Allow-Origin", "*"];

/** Serves an admitted request; one to an MCP server whose tools are checked goes through their gate. */
async function passTools(
  context: ServeContext,
  down: Downstream,
  route: WorkloadRoute,
  call: Call,
  requestId: string,
): Promise<void> {
  const { workload } = call.admitted;
  if (!workload.tools || call.origin === "pinning") return pass(context, down, route, call, requestId);
  const gated = await gate(context, down, call);
  if ("request" in gated) return pass(context, gated.request, route, call, requestId);
  const text = JSON.stringify(gated.refused.body);
  const { status } = gated.refused;
  respond(context.forwarding.rules, down, status, "application/json", text, ["X-Request-Id", requestId], null);
  recordOwn(context, call, { status, bytesIn: down.contentLength, bytesOut: Buffer.byteLength(text) });
}

/** Serves an admitted request and meters it. */
async function pass(
  context: ServeContext,
  down: Downstream,
  route: WorkloadRoute,
  call: Call,
  requestId: string,
): Promise<void> {
  const { deps, forwarding } = context;
  const { admitted } = call;
  // A loop of functions that serve each other would never end.
  if (admitted.workload.servers && call.origin !== "client") throw new GatewayError("ROUTE_NOT_FOUND");
  if (admitted.workload.servers) return recordOwn(context, call, await serveVirtual(context, down, call));
  if (admitted.workload.door === "platform") return answerHere(context, down, call, requestId);
  const limits = limitsFor(deps, down, admitted);
  const session = sessionOf(down, admitted.workload);
  const pin = session === null ? choose(context, down, call) : null;
  const lease = await leaseFor(context, down, call, session);
  if (lease === null) {
    call.leave();
    return handOn(context, down, deps.onward ?? "", requestId);
  }
  try {
    const own = ownEndpointOf(deps, down, admitted);
    if (own !== null) {
      const outcome = await answerOwn(forwarding.rules, down, own, requestId);
      lease.release();
      recordOwn(context, call, outcome);
      return;
    }
    const rawHeaders = session === null ? down.rawHeaders : withOwnId(down.rawHeaders, session);
    const head = headOf(context, down, call, { requestId, rawHeaders });
    const cookie = cookieFor(context.cookies, isSecure(forwarding.rules, down), route, admitted, pin);
    send(context, down, call, lease, { head, limits, cookie, requestId });
  } catch (error) {
    lease.release();
    throw error;
  }
}

/** Whether an edge process serves this request: it has room, and the workload answers and not the platform. */
const canServe = ({ deps, open, forwarding }: ServeContext, down: Downstream, admitted: Admitted): boolean =>
  open.hasRoom(admitted, addressOf(forwarding.rules, down)) && ownEndpointOf(deps, down, admitted) === null;

/** The instance that serves the request; null where an edge process has none that is ready. */
async function leaseFor(
  context: ServeContext,
  down: Downstream,
  call: Call,
  session: McpSession | null,
): Promise<InstanceLease | null> {
  const { deps } = context;
  if (deps.onward === undefined)
    return session === null ? instanceFor(context, down, call) : rejoin(context, call, session.copy);
  return session === null ? deps.ready(call.admitted.workload, call.revision) : null;
}

/** Forwards to the leased instance and releases the lease at the end. */
export function send(
  context: ServeContext,
  down: Downstream,
  call: Call,
  lease: InstanceLease,
  sent: { head: string; limits: ExchangeLimits; cookie: string | null; requestId: string },
  ended: (outcome: ForwardOutcome) => void = nothing,
): void {
  const { deps, forwarding, responding } = context;
  const { workload } = call.admitted;
  const { head, limits, cookie, requestId } = sent;
  const { door } = workload;
  if (door === "platform") throw new GatewayError("BAD_REQUEST", "Nothing runs behind this address: call it directly.");
  const fixed = workload.preview?.responseHeaders ?? null;
  forward(forwarding, down, {
    method: down.method,
    head,
    key: `${lease.key}:${door}`,
    dial: () => deps.dial(lease, door),
    // An ended copy is replaced while the request waits, so dialling may take as long as a start.
    ...(workload.revisions === null ? {} : { dialMs: deps.settings.limits.holdMs }),
    exchangeable: door === "api",
    limits,
    extras: { fixed, cookie, prefix: call.pagePrefix, requestId, told: timeLimitFields(forwarding.rules, limits) },
    refuse: (error) => respondError(responding, down, error, { fixed, requestId }),
    right: call.right,
    edit: workload.kind === "function" ? sessionMarker(lease) : null,
    done: doneOf(context, call, lease, ended),
  });
}

const nothing = (): void => {};

/** A function of its own, because a WebSocket that idles for hours keeps what this function refers to. */
const doneOf =
  (context: ServeContext, call: Call, lease: InstanceLease, ended: (outcome: ForwardOutcome) => void) =>
  (outcome: ForwardOutcome): void => {
    lease.release();
    ended(outcome);
    record(context, call, outcome);
  };

/** Answers a request for which no instance has to run. */
async function answerHere(context: ServeContext, down: Downstream, call: Call, requestId: string): Promise<void> {
  const own = askOwn(context.deps, down, call.admitted);
  if (own === null) throw new GatewayError("ROUTE_NOT_FOUND");
  const outcome = await answerOwn(context.forwarding.rules, down, own, requestId, SERVED_BODY_BYTES_MAX);
  recordOwn(context, call, outcome);
}

/** Bytes of an MCP request, including the text that tool calls carry. */
const SERVED_BODY_BYTES_MAX = 4 * 1024 * 1024;

/** Only requests to a sandbox's own API: paths below a port belong to the program that listens there. */
function ownEndpointOf(deps: GatewayDeps, down: Downstream, admitted: Admitted): OwnEndpoint | null {
  const { kind, door } = admitted.workload;
  return kind === "sandbox" && door === "api" ? askOwn(deps, down, admitted) : null;
}

function askOwn(deps: GatewayDeps, down: Downstream, { workload, path }: Admitted): OwnEndpoint | null {
  if (down.upgrade !== null) return null;
  const { kind, workspace, uid } = workload;
  const header = (name: string): string | undefined => down.header(name);
  return deps.ownEndpoint?.({ kind, workspace, uid, method: down.method, path, header }) ?? null;
}

/** A ready instance, otherwise waits for one. */
export async function instanceFor(context: ServeContext, down: Downstream, call: Call): Promise<InstanceLease> {
  const ready = await context.deps.ready(call.admitted.workload, call.revision);
  if (ready !== null) return ready;
  const sinceMs = performance.now();
  try {
    return await hold(context, down, call.admitted.workload, call.revision);
  } catch (error) {
    throw await told(context, call, error);
  } finally {
    call.heldMs = performance.now() - sinceMs;
  }
}

/** The reason of a failed start quotes logs, so only callers who may read the workload's logs get it. */
async function told({ deps }: ServeContext, { admitted }: Call, error: unknown): Promise<unknown> {
  const { principal, workload } = admitted;
  if (!(error instanceof GatewayError) || error.insight === undefined || principal === null) return error;
  return (await deps.mayReadLogs(principal, workload.workspace)) ? error.opened() : error;
}

function rejoin({ deps }: ServeContext, call: Call, copy: string): InstanceLease {
  const lease = deps.rejoin(call.admitted.workload, copy);
  if (lease === null) throw sessionGone();
  call.revision = lease.revision;
  return lease;
}

/** Sets the call's revision; returns the pin that the client is to keep, if any. */
export function choose({ deps, cookies }: ServeContext, down: Downstream, call: Call): string | null {
  const plan = call.admitted.workload.revisions;
  if (plan === null) return null;
  if (call.origin === "pinning") {
    call.revision = plan.active;
    return null;
  }
  const pinned = plan.canary === undefined ? null : cookieValue(down.header("cookie"), cookies.revision);
  const { revision, pin } = pickRevision(plan, pinned, deps.random(), deps.clock.now());
  call.revision = revision;
  return pin;
}

/** Records a request that the platform answered itself. */
const recordOwn = (context: ServeContext, call: Call, outcome: OwnOutcome): void =>
  record(context, call, { ...outcome, error: null, clientGone: false });

function record(context: ServeContext, call: Call, outcome: ForwardOutcome): void {
  const { error, ...rest } = outcome;
  if (error !== null) logFailure(context, call.admitted.workload, error, call.requestId);
  tell(context, call, { ...rest, error: error?.code ?? null });
  finished(context);
}

function tell(
  { deps, counters }: ServeContext,
  call: Call,
  outcome: Pick<RequestRecord, "status" | "bytesIn" | "bytesOut" | "error" | "clientGone">,
): void {
  const { workload, principal } = call.admitted;
  const { revision, method, heldMs, startedAtMs } = call;
  call.leave();
  const durationMs = performance.now() - call.startedMs;
  const told: RequestRecord = { workload, revision, principal, method, startedAtMs, durationMs, heldMs, ...outcome };
  counters.count(told);
  deps.meter(told);
  const { status, error } = outcome;
  deps.log.debug(
    { requestId: call.requestId, uid: workload.uid, revision, method, status, error, durationMs },
    ANSWERED,
  );
}

/** Message of the log line that every request leaves at the level `debug`. */
const ANSWERED = "the gateway answered";

/** Ends a request that was not forwarded. */
export function refuse(
  context: ServeContext,
  down: Downstream,
  call: Call | null,
  thrown: unknown,
  extra: { fixed: FixedHeaders | null; requestId: string },
): void {
  if (thrown instanceof ClientGone) {
    if (call !== null) tell(context, call, { status: 0, bytesIn: 0, bytesOut: 0, error: null, clientGone: true });
  } else {
    const error = asGatewayError(thrown);
    if (error.status >= 500) logFailure(context, call?.admitted.workload ?? null, error, extra.requestId);
    respondError(context.responding, down, error, extra);
    const outcome = { status: error.status, bytesIn: 0, bytesOut: 0, error: error.code, clientGone: false };
    if (call === null) {
      context.counters.refused(error.code);
      context.deps.log.debug({ requestId: extra.requestId, status: error.status, error: error.code }, ANSWERED);
    } else tell(context, call, outcome);
  }
  finished(context);
}

function logFailure({ deps }: ServeContext, workload: Workload | null, error: GatewayError, requestId: string): void {
  const fields = { requestId, code: error.code, uid: workload?.uid, detail: error.detail, err: error.cause };
  if (error.code === "INTERNAL_ERROR") deps.log.error(fields, "the gateway failed");
  else deps.log.warn(fields, "a request to a workload failed");
}
