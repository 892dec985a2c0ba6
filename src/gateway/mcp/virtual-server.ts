/**
 * One MCP server in front of several functions. It lists their tools under prefixed names and passes each call to the
 * function behind it, on the way of every other request and with the caller's credentials, so that the rights and rules
 * of each function hold here too.
 *
 * A client that begins with `initialize` has a session at every function, and one session id that names them all. Their
 * messages to the client share its streams; requests of a function carry its number in their ids, so that the client's
 * answers find their way back. Clients of the sessionless protocol have nothing to keep apart: a call and all its further
 * round trips name the tool, and thereby the function.
 */
import { GatewayError } from "../../contract/gateway-errors.ts";
import { matchesAny, type ServedServer } from "../../contract/tools/tool-rules.ts";
import type { Downstream } from "../../http/downstream.ts";
import { respond } from "../../http/platform-response.ts";
import {
  declaredVersion,
  failure,
  handshakeVersion,
  META,
  RPC,
  RpcError,
  type RpcId,
  type RpcRequest,
  STATELESS,
  VERSIONS,
} from "../../lib/mcp/wire.ts";
import { isRecord } from "../../lib/untrusted-json.ts";
import type { Call, ServeContext } from "../call.ts";
import type { Principal } from "../deps.ts";
import { ClientGone } from "../hold.ts";
import type { OwnOutcome } from "../own-answer.ts";
import { readBody } from "../request-body.ts";
import { ClientStream } from "./client-stream.ts";
import {
  closeSession,
  listTools,
  type Member,
  type MemberSession,
  messagesOf,
  openOwn,
  openSession,
  post,
  sessionHeaders,
  statelessHeaders,
  statelessTools,
  tasksIn,
  tell,
  toolsIn,
} from "./member.ts";
import { askMember, type MemberAnswer } from "./member-request.ts";
import { MESSAGE_BYTES_MAX, type RpcMessage, rpcBodyOf } from "./rpc-body.ts";
import { MCP_PATH, sessionGone } from "./session.ts";
import { type CallerTasks, openedMessage, signedMessage, TASK_METHODS, type Task } from "./task-ids.ts";
import { isCarried, sessionFrom, sessionIdOf, type VirtualSession } from "./virtual-session.ts";
import { behind, clientId, prefixed, serverId } from "./virtual-tools.ts";

/** Whether a tool runs as a task is decided by its server when it is called. */
const DISCOVERED = { tools: { listChanged: false }, extensions: { "io.modelcontextprotocol/tasks": {} } };
/** Tasks of the handshake versions. */
const TASKS = { list: {}, cancel: {}, requests: { tools: { call: {} } } };

/** How long clients may keep the discovery answer, which changes with the function's record only. */
const DISCOVERY_TTL_MS = 60_000;

/** One request of a client to a virtual server. */
class VirtualExchange {
  readonly #context: ServeContext;
  readonly #down: Downstream;
  readonly #workspace: string;
  readonly #name: string;
  readonly #servers: readonly ServedServer[];
  readonly #left = new AbortController();
  readonly #session: VirtualSession | null;
  readonly #requestId: string;
  readonly #path: string;
  readonly #uid: string;
  readonly #principal: Principal | null;
  #bytesIn = 0;

  constructor(context: ServeContext, down: Downstream, { admitted, requestId }: Call) {
    const { workspace, name, servers } = admitted.workload;
    this.#context = context;
    this.#down = down;
    this.#workspace = workspace;
    this.#name = name;
    this.#servers = servers ?? [];
    this.#requestId = requestId;
    this.#path = admitted.path;
    this.#uid = admitted.workload.uid;
    this.#principal = admitted.principal;
    const id = down.header("mcp-session-id");
    const isStateless = down.header("mcp-protocol-version") === STATELESS;
    this.#session = id === undefined || isStateless ? null : sessionFrom(id);
    if (id !== undefined && !isStateless && this.#session === null) throw sessionGone();
  }

  async serve(): Promise<OwnOutcome> {
    if (this.#down.upgrade !== null || !MCP_PATH.test(this.#path)) throw new GatewayError("ROUTE_NOT_FOUND");
    if (this.#down.method === "GET") return this.#listen();
    if (this.#down.method === "DELETE") return this.#end();
    if (this.#down.method !== "POST") throw new GatewayError("METHOD_NOT_ALLOWED", "POST messages here.");
    const body = await readBody(this.#down, MESSAGE_BYTES_MAX, this.#gone);
    this.#bytesIn = body.length;
    let id: RpcId = null;
    try {
      const { messages, isBatch } = rpcBodyOf(body);
      const [message = {}] = messages;
      if (isBatch) throw new RpcError(RPC.invalidRequest, "Send one message at a time.");
      id = (message.id ?? null) as RpcId;
      return await this.#answer(message);
    } catch (error) {
      if (this.#left.signal.aborted) throw new ClientGone();
      if (!(error instanceof RpcError)) throw error;
      return this.#say(error.status, failure(id, error));
    }
  }

  readonly #gone = (): void => this.#left.abort(new ClientGone());

  get #signal(): AbortSignal {
    return this.#left.signal;
  }

  #member({ name }: Pick<ServedServer, "name">): Member {
    return { context: this.#context, down: this.#down, workspace: this.#workspace, name, origin: "virtual-server" };
  }

  get #all(): { server: ServedServer; index: number; member: Member }[] {
    return this.#servers.map((server, index) => ({ server, index, member: this.#member(server) }));
  }

  /** The servers that the client has a session at; those that did not answer `initialize` have none. */
  get #inSession(): { server: ServedServer; index: number; member: Member; session: MemberSession }[] {
    return this.#all.flatMap((one) => {
      const session = this.#session?.get(one.server.name);
      return session === undefined ? [] : [{ ...one, session }];
    });
  }

  async #answer(message: RpcMessage): Promise<OwnOutcome> {
    if (typeof message.method !== "string") return this.#handBack(message);
    if (message.id === undefined) return this.#broadcast(message);
    const request = message as RpcRequest;
    const { method, params = {} } = request;
    const version = declaredVersion((name) => this.#down.header(name), request);
    const isStateless = version === STATELESS;
    const reply = (result: Record<string, unknown>): OwnOutcome =>
      this.#say(200, this.#complete({ jsonrpc: "2.0", id: request.id ?? null, result }, isStateless));
    switch (method) {
      case "initialize":
        return this.#begin(request);
      case "server/discover":
        return reply({
          ...{ supportedVersions: VERSIONS, capabilities: DISCOVERED, serverInfo: this.#info },
          ...{ ttlMs: DISCOVERY_TTL_MS, cacheScope: "private" },
        });
      case "ping":
        return reply({});
      case "logging/setLevel":
        if (this.#session === null) throw noMethod(method);
        await this.#broadcast(message, false);
        return reply({});
      case "tools/list":
        return reply({ tools: await this.#list(isStateless), ttlMs: 0, cacheScope: "private" });
      case "tools/call":
        return this.#call(request, params, isStateless);
      case "tasks/list":
        if (this.#session === null) throw noMethod(method);
        return reply({ tasks: await this.#listTasks() });
      default:
        if (!TASK_METHODS.has(method)) throw noMethod(method);
        return this.#ofTask(request, params, isStateless);
    }
  }

  get #info(): { name: string; version: string } {
    return { name: this.#name, version: "1.0.0" };
  }

  /** A server that does not answer is left out: the others are of use without it. */
  async #each<E extends { server: ServedServer }, T>(
    entries: readonly E[],
    ask: (entry: E) => Promise<T>,
  ): Promise<(T | null)[]> {
    return Promise.all(
      entries.map((entry) =>
        ask(entry).catch((error: unknown) => {
          this.#signal.throwIfAborted();
          const fields = { requestId: this.#requestId, function: entry.server.name, err: error };
          this.#context.deps.log.warn(fields, "a server behind a virtual one did not answer");
          return null;
        }),
      ),
    );
  }

  async #begin({ id = null, params = {} }: RpcRequest): Promise<OwnOutcome> {
    const version = handshakeVersion(params.protocolVersion);
    const asked = { ...params, protocolVersion: version };
    const opened = await this.#each(this.#all, ({ member }) => openSession(member, asked, this.#signal));
    const session = new Map<string, MemberSession>();
    let hasLogging = false;
    let hasTasks = false;
    for (const [index, one] of opened.entries()) {
      const server = this.#servers[index];
      if (one === null || server === undefined || !isCarried(server.name, one.session, this.#servers.length)) continue;
      session.set(server.name, one.session);
      hasLogging ||= one.capabilities.logging !== undefined;
      hasTasks ||= one.capabilities.tasks !== undefined;
    }
    if (session.size === 0) throw new RpcError(RPC.internalError, "None of the servers behind this one answers.");
    const capabilities = {
      tools: { listChanged: true },
      ...(hasLogging ? { logging: {} } : {}),
      ...(hasTasks ? { tasks: TASKS } : {}),
    };
    const result = { protocolVersion: version, capabilities, serverInfo: this.#info };
    // Where no server has a session, none could say that it has ended.
    const hasSession = [...session.values()].some((one) => one.id !== null);
    const header = hasSession ? ["Mcp-Session-Id", sessionIdOf(session)] : [];
    return this.#say(200, { jsonrpc: "2.0", id, result }, header);
  }

  async #list(isStateless: boolean): Promise<unknown[]> {
    const lists = await this.#each(this.#all, ({ server, member }) => {
      if (this.#session === null) return isStateless ? this.#statelessList(member) : listTools(member, this.#signal);
      const session = this.#session.get(server.name);
      return session === undefined ? Promise.resolve([]) : toolsIn(member, session, this.#signal);
    });
    return this.#servers.flatMap((server, index) => prefixed(server, lists[index] ?? []));
  }

  /** Servers that only know the handshake are asked in a session of the platform's own. */
  async #statelessList(member: Member): Promise<unknown[]> {
    try {
      return await statelessTools(member, this.#signal);
    } catch (error) {
      if (!(error instanceof RpcError)) throw error;
      return listTools(member, this.#signal);
    }
  }

  async #call(request: RpcRequest, params: Record<string, unknown>, isStateless: boolean): Promise<OwnOutcome> {
    const found = behind(this.#servers, params.name);
    if (found === null)
      throw new RpcError(RPC.invalidParams, `There is no tool ${JSON.stringify(params.name)?.slice(0, 140)}.`);
    const { server, tool } = found;
    const message = { ...request, params: { ...params, name: tool } };
    const signed = (told: RpcMessage): RpcMessage => signedMessage(told, this.#tasks, tool, server.name);
    const passed = await this.#direct(server, message, isStateless ? tool : null, signed);
    if (passed !== null) return passed;
    const member = this.#member(server);
    const session = await openOwn(member, this.#signal);
    try {
      const answer = await post(member, sessionHeaders(session), message, this.#signal);
      return await this.#pass(answer, (told) => this.#complete(withoutRequests(told), isStateless));
    } finally {
      closeSession(member, session, this.#signal).catch(() => {}); // the server ends idle sessions itself
    }
  }

  /** Passes a request to a server in the client's own session, or without one; null where the server needs a session. */
  async #direct(
    server: ServedServer,
    message: RpcRequest,
    stateless: string | null,
    signed: (told: RpcMessage) => RpcMessage,
  ): Promise<OwnOutcome | null> {
    const member = this.#member(server);
    if (this.#session !== null) {
      const index = this.#servers.indexOf(server);
      const session = this.#session.get(server.name);
      if (session === undefined) throw sessionGone();
      const answer = await post(member, sessionHeaders(session), message, this.#signal);
      if (answer.status === 404) throw sessionGone();
      return this.#pass(answer, (told) => withClientId(signed(told), index));
    }
    if (stateless === null) return null;
    const headers = { ...statelessHeaders(message.method, stateless), ...this.#paramHeaders() };
    const answer = await post(member, headers, message, this.#signal);
    if (answer.status !== 400) return this.#pass(answer, (told) => withoutRequests(signed(told)));
    answer.body.destroy();
    return null;
  }

  get #tasks(): CallerTasks {
    return this.#context.tasks.of(this.#uid, this.#principal);
  }

  /** A task is its server's, and stays the business of the caller who began it and of the tool's rules. */
  async #ofTask(request: RpcRequest, params: Record<string, unknown>, isStateless: boolean): Promise<OwnOutcome> {
    const task = this.#tasks.open(params.taskId);
    const server = this.#servers.find(({ name }) => name === task.server);
    if (!server || !isServed(server, task))
      throw new RpcError(RPC.invalidParams, "The tool of this task is not served any more.");
    const message = openedMessage(request, this.#tasks);
    const signed = (told: RpcMessage): RpcMessage => signedMessage(told, this.#tasks, task.tool, server.name);
    const passed = await this.#direct(server, message, isStateless ? task.id : null, signed);
    if (passed === null) throw new RpcError(RPC.invalidRequest, "Ask for a task in the session that began it.");
    return passed;
  }

  /** The caller's tasks at all servers of the session, in one page. */
  async #listTasks(): Promise<unknown[]> {
    const tasks = this.#tasks;
    const open = this.#inSession;
    const lists = await this.#each(open, ({ member, session }) => tasksIn(member, session, this.#signal));
    return open.flatMap(({ server }, at) => {
      const told = { result: { tasks: lists[at] ?? [] } };
      // Leaves out what the caller did not begin.
      const own = signedMessage(told, tasks, null, server.name).result.tasks as { taskId: string }[];
      return own.filter(({ taskId }) => isServed(server, tasks.open(taskId)));
    });
  }

  /** Arguments that the tool wants repeated in headers. */
  #paramHeaders(): Record<string, string> {
    const found: Record<string, string> = {};
    const { rawHeaders } = this.#down;
    for (let i = 0; i < rawHeaders.length; i += 2)
      if (/^mcp-param-[\w-]+$/i.test(rawHeaders[i] ?? "")) found[rawHeaders[i] as string] = rawHeaders[i + 1] ?? "";
    return found;
  }

  /** Results of the sessionless protocol say that they are complete, and who made them. */
  #complete(message: RpcMessage | null, isStateless: boolean): RpcMessage | null {
    if (!isStateless || message === null || !isRecord(message.result)) return message;
    return { ...message, result: { resultType: "complete", _meta: { [META.server]: this.#info }, ...message.result } };
  }

  /** Hands an answer to the client, each message as `change` makes it. */
  async #pass(answer: MemberAnswer, change: Change): Promise<OwnOutcome> {
    if (!/^text\/event-stream\b/i.test(answer.field("content-type") ?? "")) {
      for await (const message of messagesOf(answer)) return this.#say(answer.status, change(message));
      throw new RpcError(RPC.internalError, `The server answered with status ${answer.status} and no result.`);
    }
    const stream = new ClientStream(this.#down, this.#gone);
    stream.begin(this.#context.forwarding.rules, ["X-Request-Id", this.#requestId]);
    await copy(answer, change, stream);
    stream.end();
    return { status: 200, bytesIn: this.#bytesIn, bytesOut: stream.bytesOut };
  }

  /** The client's answer to a request of one of the servers. */
  async #handBack(message: RpcMessage): Promise<OwnOutcome> {
    const target = serverId(message.id);
    const found = target && this.#inSession.find(({ index }) => index === target.server);
    if (!found) throw new RpcError(RPC.invalidRequest, "No server behind this one has asked for this answer.");
    const own = { ...message, id: target.id };
    const status = await tell(found.member, found.session, own, this.#signal);
    if (status === 404) throw sessionGone();
    return this.#say(202, null);
  }

  async #broadcast(message: RpcMessage, answers = true): Promise<OwnOutcome> {
    await this.#each(this.#inSession, ({ member, session }) => tell(member, session, message, this.#signal));
    return answers ? this.#say(202, null) : { status: 202, bytesIn: this.#bytesIn, bytesOut: 0 };
  }

  /** The streams on which the servers speak first, as one. */
  async #listen(): Promise<OwnOutcome> {
    const notHere = new GatewayError("METHOD_NOT_ALLOWED", "Nothing speaks first here: POST messages.");
    if (this.#session === null) throw notHere;
    const stream = new ClientStream(this.#down, this.#gone);
    const open = this.#inSession;
    const answers = await this.#each(open, ({ member, session }) => {
      const headers = { ...sessionHeaders(session), Accept: "text/event-stream" };
      return askMember(member, { method: "GET", headers, body: "" }, this.#signal);
    });
    const live = answers.flatMap((answer, at) => {
      if (answer?.status === 200) return [{ answer, index: open[at]?.index ?? 0 }];
      answer?.body.destroy();
      return [];
    });
    if (answers.some((answer) => answer?.status === 404)) {
      this.#left.abort(sessionGone());
      throw sessionGone();
    }
    if (live.length === 0) throw notHere;
    stream.begin(this.#context.forwarding.rules, ["X-Request-Id", this.#requestId]);
    await Promise.all(
      live.map(({ answer, index }) => copy(answer, (told) => withClientId(told, index), stream).catch(() => {})),
    );
    if (this.#signal.aborted) throw new ClientGone();
    stream.end();
    return { status: 200, bytesIn: 0, bytesOut: stream.bytesOut };
  }

  async #end(): Promise<OwnOutcome> {
    if (this.#session === null) throw new GatewayError("METHOD_NOT_ALLOWED", "There is no session to end.");
    await this.#each(this.#inSession, ({ member, session }) => closeSession(member, session, this.#signal));
    return this.#say(200, null);
  }

  #say(status: number, body: unknown, headers: readonly string[] = []): OwnOutcome {
    const text = body === null ? "" : JSON.stringify(body);
    const type = body === null ? null : "application/json";
    const all = ["X-Request-Id", this.#requestId, "Cache-Control", "no-store", ...headers];
    respond(this.#context.forwarding.rules, this.#down, status, type, text, all, null);
    return { status, bytesIn: this.#bytesIn, bytesOut: Buffer.byteLength(text) };
  }
}

/** A message of a server as the client gets it; null when the client does not get it. */
type Change = (message: RpcMessage) => RpcMessage | null;

async function copy(answer: MemberAnswer, change: Change, stream: ClientStream): Promise<void> {
  for await (const message of messagesOf(answer)) {
    const changed = change(message);
    if (changed !== null) await stream.write(changed);
  }
}

const isServed = ({ allow }: ServedServer, { tool }: Task): boolean => allow === null || matchesAny(allow, tool ?? "");

const noMethod = (name: string): RpcError =>
  new RpcError(RPC.methodNotFound, `There is no method ${name.slice(0, 100)}.`);

const isRequest = ({ method, id }: RpcMessage): boolean => method !== undefined && id !== undefined;

const withClientId = (message: RpcMessage, server: number): RpcMessage =>
  isRequest(message) ? { ...message, id: clientId(server, message.id) } : message;

/** Where no session leads back, a client's answer would find no server. */
const withoutRequests = (message: RpcMessage): RpcMessage | null => (isRequest(message) ? null : message);

export const serveVirtual = (context: ServeContext, down: Downstream, call: Call): Promise<OwnOutcome> =>
  new VirtualExchange(context, down, call).serve();
