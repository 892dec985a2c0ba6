/**
 * Ties a session of an MCP server to the copy of the server that holds it. The copy's name travels inside the session
 * id that the client keeps, so every gateway finds it, also after a restart, and nothing has to be remembered here.
 * The server itself sees the id that it made.
 */
import { GatewayError } from "../contract/gateway-errors.ts";
import type { Downstream } from "../http/downstream.ts";
import { lowerName } from "../http/http1/header-name.ts";
import type { InstanceLease, Workload } from "./deps.ts";

export interface McpSession {
  /** As the server made it. */
  id: string;
  /** Key of the lease on the copy that made it. */
  copy: string;
}

const HEADER = "mcp-session-id";
/** Allowed in a session id, and in no uid. */
const MARK = "~";
/** From this revision of the protocol on there are no sessions, and a stray id means nothing. */
const SESSIONLESS_SINCE = "2026-07-28";

/** Null when the request belongs to no copy in particular. */
export function sessionOf(down: Downstream, { kind }: Workload): McpSession | null {
  if (kind !== "function") return null;
  const given = down.header(HEADER);
  const mark = given?.lastIndexOf(MARK) ?? -1;
  if (given === undefined || mark < 0) return null;
  if ((down.header("mcp-protocol-version") ?? "") >= SESSIONLESS_SINCE) return null;
  return { id: given.slice(0, mark), copy: given.slice(mark + 1) };
}

export const sessionGone = (): GatewayError => new GatewayError("SESSION_NOT_FOUND");

/** The request's fields as the server is to see them. */
export const withOwnId = (rawHeaders: readonly string[], { id }: McpSession): string[] =>
  replaced(rawHeaders, () => id);

/** For the response of a server that opens or continues a session. */
export const sessionMarker =
  ({ key }: InstanceLease) =>
  (headers: string[]): string[] =>
    replaced(headers, (id) => `${id}${MARK}${key}`);

function replaced(headers: readonly string[], change: (value: string) => string): string[] {
  return headers.map((text, index) =>
    index % 2 === 1 && lowerName(headers[index - 1] as string) === HEADER ? change(text) : text,
  );
}
