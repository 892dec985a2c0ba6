/** The handshake that opens a realtime session at a provider. */
import { GatewayError } from "../../contract/gateway-errors.ts";
import type { Downstream } from "../../http/downstream.ts";
import { PROTOCOL_FIELD } from "../../http/own-protocols.ts";
import type { ClientCall } from "../client-call.ts";
import type { UpgradeRequest } from "../provider-upgrade.ts";
import { requestFields, requestLines } from "../upstream-headers.ts";
import { prefixedBase } from "../upstream-path.ts";
import type { UpstreamCandidate } from "../upstream-request.ts";
import { isRealtime } from "./endpoint.ts";

/** Query parameters that clients write because their API wants them; the record's model is what counts. */
const KNOWN_PARAMETERS = new Set(["model", "deployment", "api-version", "token"]);
/** The subprotocol of the realtime API. Others that clients offer carry keys. */
const SUBPROTOCOL = "realtime";
const KEY = /^[A-Za-z0-9+/]{22}==$/;

/** Throws unless this is the handshake of a WebSocket that the gateway can read. */
export function checkHandshake(down: Downstream, { path, query }: ClientCall): void {
  if (down.upgrade?.toLowerCase() !== "websocket" || !isRealtime(path))
    throw new GatewayError("BAD_REQUEST", "A model takes WebSockets at /v1/realtime only: send a plain request.");
  if (down.header("sec-websocket-version") !== "13" || !KEY.test(down.header("sec-websocket-key") ?? ""))
    throw new GatewayError("BAD_REQUEST", "The handshake of the WebSocket is not one of version 13.");
  const unknown = [...new URLSearchParams(query).keys()].find((name) => !KNOWN_PARAMETERS.has(name));
  if (unknown !== undefined)
    throw new GatewayError(
      "BAD_REQUEST",
      `${unknown.slice(0, 40)} is not a parameter of realtime sessions here: a session is opened anew, with the model of the record.`,
    );
}

export function realtimeRequest(
  down: Downstream,
  call: ClientCall,
  candidate: UpstreamCandidate,
  basePath: string,
): UpgradeRequest {
  const { provider, resolved } = candidate;
  candidate.fields ??= requestFields(provider, resolved.connection, resolved.model.spec.runtime?.organization);
  const offers = (down.header(PROTOCOL_FIELD) ?? "").split(",").map((offered) => offered.trim());
  const handshake = [
    ...["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"],
    `Sec-WebSocket-Key: ${down.header("sec-websocket-key")}`,
    ...(offers.includes(SUBPROTOCOL) ? [`Sec-WebSocket-Protocol: ${SUBPROTOCOL}`] : []),
  ];
  return {
    path: realtimePath(candidate, basePath),
    fields: `${requestLines(call, candidate.fields)}${handshake.join("\r\n")}\r\n`,
  };
}

function realtimePath({ provider, model, resolved }: UpstreamCandidate, basePath: string): string {
  const name = encodeURIComponent(model);
  const style = provider.versionedPaths;
  const version = style && resolved.connection?.config[style.configKey];
  if (version) {
    const path = provider.realtime?.versionedPath ?? "";
    return `${basePath}${path}?${style.query}=${encodeURIComponent(version)}&deployment=${name}`;
  }
  return `${prefixedBase(basePath, provider.prefix)}/realtime?model=${name}`;
}
