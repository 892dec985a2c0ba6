/**
 * The platform as an MCP client of a function, for both generations of the protocol: a session that begins with
 * `initialize`, and single requests of the sessionless one.
 */
import type { Readable } from "node:stream";
import { TOOLS_MAX } from "../../contract/tools/tool-state.ts";
import { HANDSHAKE_VERSIONS, META, RPC, RpcError, STATELESS } from "../../lib/mcp/wire.ts";
import { parseSseEvent, SseSplitter } from "../../lib/network/sse.ts";
import { isRecord } from "../../lib/untrusted-json.ts";
import { headerText } from "./header-text.ts";
import { askMember, type Member, type MemberAnswer } from "./member-request.ts";
import { MESSAGE_BYTES_MAX, type RpcMessage } from "./rpc-body.ts";

export type { Member } from "./member-request.ts";

/** A session at a server; servers without sessions give no id. */
export interface MemberSession {
  id: string | null;
  version: string;
}

/** As long as a cold start may take, and the listing after it. */
const LISTING_MS = 120_000;
const PAGES_MAX = 20;
const CLIENT = { name: "berth", version: "1.0.0" };
const ACCEPT = "application/json, text/event-stream";

export const sessionHeaders = ({ id, version }: MemberSession): Record<string, string> => ({
  Accept: ACCEPT,
  "MCP-Protocol-Version": version,
  ...(id === null ? {} : { "Mcp-Session-Id": id }),
});

export const statelessHeaders = (method: string, name?: string): Record<string, string> => ({
  Accept: ACCEPT,
  "MCP-Protocol-Version": STATELESS,
  "Mcp-Method": method,
  ...(name === undefined ? {} : { "Mcp-Name": headerText(name) }),
});

export const post = (
  member: Member,
  headers: Record<string, string>,
  message: unknown,
  signal: AbortSignal,
): Promise<MemberAnswer> => askMember(member, { method: "POST", headers, body: JSON.stringify(message) }, signal);

/** The messages of an answer, of JSON as well as of a stream of events. */
export async function* messagesOf({ field, body }: MemberAnswer): AsyncGenerator<RpcMessage> {
  if (!/^text\/event-stream\b/i.test(field("content-type") ?? "")) {
    yield* messagesIn(await textOf(body));
    return;
  }
  const splitter = new SseSplitter();
  for await (const chunk of body as AsyncIterable<Buffer>) {
    for (const block of splitter.push(chunk)) {
      const event = parseSseEvent(block);
      if (event !== null) yield* messagesIn(event.data);
    }
    if (splitter.pendingBytes > MESSAGE_BYTES_MAX) throw new RpcError(RPC.internalError, "A message is too large.");
  }
}

function messagesIn(text: string): RpcMessage[] {
  try {
    const parsed: unknown = JSON.parse(text);
    return (Array.isArray(parsed) ? parsed : [parsed]).filter(isRecord);
  } catch {
    return [];
  }
}

export async function textOf(body: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > MESSAGE_BYTES_MAX) throw new RpcError(RPC.internalError, "An answer is too large.");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** The answer to the request with this id. */
async function answerIn(answer: MemberAnswer, id: number): Promise<Record<string, unknown>> {
  for await (const message of messagesOf(answer)) {
    if (message.id !== id || message.method !== undefined) continue;
    if (isRecord(message.result)) return message.result;
    const { code, message: sentence } = isRecord(message.error) ? message.error : {};
    throw new RpcError(typeof code === "number" ? code : RPC.internalError, String(sentence ?? "The request failed."));
  }
  throw new RpcError(RPC.internalError, `The server answered with status ${answer.status} and no result.`);
}

export interface Opened {
  session: MemberSession;
  capabilities: Record<string, unknown>;
}

/** Begins a session with the client's own `initialize`. */
export async function openSession(
  member: Member,
  params: Record<string, unknown>,
  signal: AbortSignal,
): Promise<Opened> {
  const begun = await post(member, { Accept: ACCEPT }, { jsonrpc: "2.0", id: 0, method: "initialize", params }, signal);
  const { protocolVersion, capabilities } = await answerIn(begun, 0);
  // The version is sent in a header, and the text comes from the server.
  const version = HANDSHAKE_VERSIONS.find((known) => known === protocolVersion);
  if (version === undefined) throw new RpcError(RPC.internalError, "The server names no known version.");
  const session = { id: begun.field("mcp-session-id") ?? null, version };
  return { session, capabilities: isRecord(capabilities) ? capabilities : {} };
}

/** A session of the platform's own, which can do nothing for the server. */
export async function openOwn(member: Member, signal: AbortSignal): Promise<MemberSession> {
  const params = { protocolVersion: HANDSHAKE_VERSIONS[0], capabilities: {}, clientInfo: CLIENT };
  const { session } = await openSession(member, params, signal);
  await tell(member, session, { jsonrpc: "2.0", method: "notifications/initialized" }, signal);
  return session;
}

/** Sends a message that has no answer; returns the status. */
export async function tell(
  member: Member,
  session: MemberSession,
  message: unknown,
  signal: AbortSignal,
): Promise<number> {
  const { status, body } = await post(member, sessionHeaders(session), message, signal);
  body.destroy();
  return status;
}

export async function closeSession(member: Member, session: MemberSession, signal: AbortSignal): Promise<void> {
  if (session.id === null) return;
  const { body } = await askMember(member, { method: "DELETE", headers: sessionHeaders(session), body: "" }, signal);
  body.destroy();
}

/** All pages of a server's tools within a session. */
export const toolsIn = (member: Member, session: MemberSession, signal: AbortSignal): Promise<unknown[]> =>
  listIn("tools", member, session, signal);

/** All pages of a server's tasks within a session; none for a server that lists no tasks. */
export async function tasksIn(member: Member, session: MemberSession, signal: AbortSignal): Promise<unknown[]> {
  try {
    return await listIn("tasks", member, session, signal);
  } catch (error) {
    if (error instanceof RpcError && error.code === RPC.methodNotFound) return [];
    throw error;
  }
}

const listIn = (
  what: "tools" | "tasks",
  member: Member,
  session: MemberSession,
  signal: AbortSignal,
): Promise<unknown[]> =>
  pages(what, (params, id) => {
    const message = { jsonrpc: "2.0", id, method: `${what}/list`, params };
    return post(member, sessionHeaders(session), message, signal);
  });

/** The tools of a server without a session. */
export const statelessTools = (member: Member, signal: AbortSignal): Promise<unknown[]> =>
  pages("tools", (params, id) => {
    const _meta = { [META.version]: STATELESS, [META.client]: CLIENT, [META.clientCapabilities]: {} };
    const message = { jsonrpc: "2.0", id, method: "tools/list", params: { ...params, _meta } };
    return post(member, statelessHeaders("tools/list"), message, signal);
  });

async function pages(
  what: "tools" | "tasks",
  ask: (params: Record<string, unknown>, id: number) => Promise<MemberAnswer>,
): Promise<unknown[]> {
  const found: unknown[] = [];
  let cursor: unknown;
  for (let page = 1; page <= PAGES_MAX && found.length < TOOLS_MAX; page += 1) {
    const result = await answerIn(await ask(cursor === undefined ? {} : { cursor }, page), page);
    const entries = result[what];
    found.push(...(Array.isArray(entries) ? entries : []));
    cursor = result.nextCursor;
    if (typeof cursor !== "string" || cursor === "") break;
  }
  return found.slice(0, TOOLS_MAX);
}

/** The tools of a server, whichever generation of the protocol it speaks. */
export async function listTools(member: Member, signal: AbortSignal): Promise<unknown[]> {
  const limited = AbortSignal.any([signal, AbortSignal.timeout(LISTING_MS)]);
  let session: MemberSession;
  try {
    session = await openOwn(member, limited);
  } catch (error) {
    if (!(error instanceof RpcError)) throw error;
    return statelessTools(member, limited);
  }
  try {
    return await toolsIn(member, session, limited);
  } finally {
    await closeSession(member, session, limited).catch(() => {});
  }
}
