/** Opens a realtime session: the first model that accepts the handshake is joined to the client. */
import { GatewayError } from "../../contract/gateway-errors.ts";
import type { Downstream } from "../../http/downstream.ts";
import { fieldOf } from "../../http/fields.ts";
import { brandWords } from "../../http/header-rules.ts";
import { ownChoice, PROTOCOL_FIELD } from "../../http/own-protocols.ts";
import { Tunnel } from "../../http/tunnel.ts";
import { writeWhole } from "../answer-writer.ts";
import type { AskingEngine } from "../asking.ts";
import type { ClientCall } from "../client-call.ts";
import type { ModelTarget } from "../model-records.ts";
import type { UpgradeResult } from "../provider-upgrade.ts";
import { passedFields } from "../upstream-headers.ts";
import type { UpstreamCandidate } from "../upstream-request.ts";
import { providerFailure } from "../upstreams.ts";
import { checkHandshake, realtimeRequest } from "./provider-request.ts";
import { ResponseLedger, refuseGuarded } from "./response-ledger.ts";
import { WatchedStream } from "./watched-stream.ts";

export interface SessionAsk {
  down: Downstream;
  call: ClientCall;
  /** The model that the caller asked. */
  first: UpstreamCandidate;
  target: ModelTarget;
  /** The models to try, in this order. */
  candidates: readonly UpstreamCandidate[];
  /** Aborts when the client disconnects. */
  signal: AbortSignal;
  /** The session is over. */
  ended(): void;
}

type Switched = Extract<UpgradeResult, { kind: "switched" }>;

/** Returns when the session has begun, or the client was answered with the provider's refusal. */
export async function openSession(engine: AskingEngine, ask: SessionAsk): Promise<void> {
  const { down, call, first, target, candidates, signal } = ask;
  checkHandshake(down, call);
  const able = candidates.filter(({ provider }) => provider.realtime);
  let left: unknown = new GatewayError("BAD_REQUEST", `${first.provider.title} has no realtime API.`);
  for (const [index, candidate] of able.entries()) {
    const ledger = ledgerOf(engine, ask, candidate);
    refuseGuarded(candidate.resolved);
    await ledger.refuseWhenSpent();
    try {
      const upstream = engine.upstreamOf(candidate);
      if (!upstream.upgrade) continue;
      const answer = await upstream.upgrade(realtimeRequest(down, call, candidate, upstream.basePath), signal);
      if (answer.kind === "switched") return join(engine, ask, candidate, answer, ledger);
      if (index === able.length - 1) return writeRefusal(engine, down, candidate, target, answer);
      left = new GatewayError("PROVIDER_UNAVAILABLE", `${candidate.provider.title} answered with ${answer.status}.`);
    } catch (error) {
      if (signal.aborted) return;
      left = providerFailure(error, candidate.provider.title);
    }
  }
  throw left;
}

function ledgerOf({ deps, sessionOf }: AskingEngine, ask: SessionAsk, candidate: UpstreamCandidate): ResponseLedger {
  const { down, call, first, target } = ask;
  const asked = first.resolved;
  const session = sessionOf(down);
  const streamed = { ...call, stream: true };
  return new ResponseLedger({ call: streamed, candidate, asked, target, session, deps });
}

function join(
  { limits, upstreams, labelsOf, deps }: AskingEngine,
  { down, target, ended }: SessionAsk,
  candidate: UpstreamCandidate,
  { headers, stream, rest }: Switched,
  ledger: ResponseLedger,
): void {
  // Nothing of the kind was offered, and compressed events could not be read.
  if (fieldOf(headers, "sec-websocket-extensions") !== undefined) {
    stream.destroy();
    throw new GatewayError("PROVIDER_BAD_RESPONSE", `${candidate.provider.title} chose an extension nobody offered.`);
  }
  const fields = passedFields(headers, NOTHING, labelsOf(candidate, target.requestId, 1));
  const own = ownChoice(down.header(PROTOCOL_FIELD), brandWords(deps.brand));
  if (own !== null && fieldOf(fields, PROTOCOL_FIELD) === undefined) fields.push("Sec-WebSocket-Protocol", own);
  const { socket, early } = down.switchProtocols({ reason: "", protocol: "websocket", headers: fields });
  const provider = new WatchedStream(stream, ledger);
  const { sessionIdleMs: idleMs, sessionTotalMs: totalMs } = limits;
  const tunnel = new Tunnel({
    client: socket,
    workload: provider,
    idleMs,
    totalMs,
    sweeper: upstreams.sweeper,
    done: ended,
  });
  tunnel.start({ fromClient: early, fromWorkload: Buffer.alloc(0) });
  if (rest.length > 0) provider.receive(rest);
}

const NOTHING: ReadonlySet<string> = new Set();

function writeRefusal(
  { labelsOf }: AskingEngine,
  down: Downstream,
  candidate: UpstreamCandidate,
  { requestId }: ModelTarget,
  { status, headers, body }: Extract<UpgradeResult, { kind: "answered" }>,
): void {
  const { title } = candidate.provider;
  if (status === 401)
    throw new GatewayError("PROVIDER_AUTHENTICATION_FAILED", `${title} refused the key of the connection.`);
  if (status < 400) throw new GatewayError("PROVIDER_BAD_RESPONSE", `${title} opened no WebSocket.`);
  writeWhole(down, status, body, passedFields(headers, NOTHING, labelsOf(candidate, requestId, 1)));
}
