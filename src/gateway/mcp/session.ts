/**
 * Routes a session of an MCP server to the copy of the server that holds it. The gateway appends the copy's name to the
 * session id that the client keeps, so every gateway finds the copy, also after a restart, and stores nothing. The
 * server sees its own session id.
 */
import { GatewayError } from "../../contract/gateway-errors.ts";
import type { Downstream } from "../../http/downstream.ts";
import { lowerName } from "../../http/http1/header-name.ts";
import type { InstanceLease, Workload } from "../deps.ts";

export interface McpSession {
  /** The session id as the server made it. */
  id: string;
  /** Lease key of the copy that holds the session. */
  copy: string;
}

/** Where a function is an MCP server. */
export const MCP_PATH = /^\/mcp\/?(\?|$)/;

const HEADER = "mcp-session-id";
/** Separates id and copy: allowed in a session id, never part of a uid. */
const MARK = "~";
/** Since this protocol version there are no sessions, and a session id is ignored. */
const SESSIONLESS_SINCE = "2026-07-28";

/** Returns null when any copy can answer the request. */
export function sessionOf(down: Downstream, { kind }: Workload): McpSession | null {
  if (kind !== "function") return null;
  const given = down.header(HEADER);
  const mark = given?.lastIndexOf(MARK) ?? -1;
  if (given === undefined || mark < 0) return null;
  if ((down.header("mcp-protocol-version") ?? "") >= SESSIONLESS_SINCE) return null;
  return { id: given.slice(0, mark), copy: given.slice(mark + 1) };
}

export const sessionGone = (): GatewayError => new GatewayError("SESSION_NOT_FOUND");

/** The request headers with the server's own session id. */
export const withOwnId = (rawHeaders: readonly string[], { id }: McpSession): string[] =>
  replaced(rawHeaders, () => id);

/** Appends the copy to the session id in a response. */
export const sessionMarker =
  ({ key }: InstanceLease) =>
  (headers: string[]): string[] =>
    replaced(headers, (id) => `${id}${MARK}${key}`);

function replaced(headers: readonly string[], change: (value: string) => string): string[] {
  return headers.map((text, index) =>
    index % 2 === 1 && lowerName(headers[index - 1] as string) === HEADER ? change(text) : text,
  );
}
