/**
 * The child process that answers all sessionless clients, since each of their requests stands for itself. A child that
 * speaks the sessionless protocol gets the requests as they are. For a child that only knows the handshake, the bridge
 * performs the handshake once and adds the fields of the newer protocol to results. In both cases the bridge assigns
 * its own ids and progress tokens, so that those of two clients cannot collide.
 *
 * Modes: resting (no child) -> opening -> ready -> resting, when the child ends or no request came for REST_AFTER_MS.
 */
import { mustAgree, type ParamHeaders, paramHeadersOf } from "../../lib/mcp/param-headers.ts";
import {
  failure,
  HANDSHAKE_VERSIONS,
  type HeaderOf,
  META,
  metaOf,
  RPC,
  RpcError,
  STATELESS,
  VERSIONS,
} from "../../lib/mcp/wire.ts";
import { VERSION } from "../version.ts";
import { BridgeListeners } from "./bridge-listeners.ts";
import { isAnswer, isRequest, type Message, StdioChild } from "./stdio-child.ts";
import type { PostAnswer } from "./stream.ts";

/** Time for the child to start and answer. Long, because a package runner downloads the command at its first start. */
const OPENING_MS = 50_000;
/**
 * Time to answer the sessionless probe. Older servers may not answer an unknown method; they then get the handshake.
 */
const PROBE_MS = 5_000;
const REST_AFTER_MS = 5 * 60_000;
const DISCOVERY_TTL_MS = 3_600_000;
/** Most pending requests of all clients together. */
const PENDING_MAX = 1024;
/** Added to results of handshake servers: not cacheable, because lists may change and may differ between clients. */
const CACHE = { ttlMs: 0, cacheScope: "private" };
const CACHEABLE = /^(tools|prompts|resources|resources\/templates)\/list$|^resources\/read$/;
/** Ids of the bridge's own requests. Forwarded requests count from 1. */
const DISCOVER_ID = "discover";
const INITIALIZE_ID = 0;
const TOOL_PAGES_MAX = 20;
const CLIENT = { name: "bridge", version: VERSION };

interface About {
  era: "handshake" | "sessionless";
  serverInfo: unknown;
  capabilities: Record<string, unknown>;
  instructions?: unknown;
}

interface Opening {
  resolve(about: About): void;
  reject(error: Error): void;
  /** Whether the handshake has begun. */
  greeted: boolean;
}

interface Pending {
  request: Message & { id: string | number; method: string };
  /** Null for a request of the bridge itself. */
  answer: PostAnswer | null;
  settle(message: Message): void;
}

export class SharedChild {
  readonly #argv: readonly string[];
  readonly #listeners = new BridgeListeners();
  #child: StdioChild | null = null;
  #about: Promise<About> | null = null;
  #opening: Opening | null = null;
  /** The child exited when its first message was not `initialize`. */
  #handshakeOnly = false;
  #pending = new Map<number, Pending>();
  /** Read at the first tool call, and again after a change notification. */
  #tools: Promise<Map<string, ParamHeaders>> | null = null;
  #nextId = 1;
  #restTimer: NodeJS.Timeout | null = null;

  constructor(argv: readonly string[]) {
    this.#argv = argv;
  }

  /** The server's description of itself. Starts the child when it does not run. */
  ready(): Promise<About> {
    this.#about ??= this.#start();
    return this.#about;
  }

  async ask(request: Pending["request"], answer: PostAnswer, header: HeaderOf): Promise<void> {
    const refuse = (code: number, why: string, status: number): void =>
      answer.finish(failure(request.id, new RpcError(code, why)), status);
    const about = await this.ready().catch((error: Error) => error);
    if (about instanceof Error) refuse(RPC.internalError, about.message, 200);
    else if (this.#pending.size + this.#listeners.size >= PENDING_MAX)
      refuse(RPC.internalError, "Too many requests are under way.", 503);
    else if (about.era === "handshake" && request.method === "server/discover")
      answer.finish(answered(request.id, discovery(about)));
    else if (about.era === "handshake" && request.method === "subscriptions/listen")
      this.#listeners.add(request, answer);
    else {
      const mismatch = request.method === "tools/call" ? await this.#mismatchIn(request, header, about) : null;
      if (mismatch !== null) answer.finish(failure(request.id, mismatch), mismatch.status);
      else if (answer.awaited) this.#send(request, about, answer, (message) => finish(answer, request, message, about));
    }
  }

  #send(request: Pending["request"], about: About, answer: PostAnswer | null, settle: Pending["settle"]): void {
    const id = this.#nextId++;
    const message = { id, method: request.method, params: forChild(request.params, id, about) };
    if (this.#child?.send(message)) this.#pending.set(id, { request, answer, settle });
    else settle(failure(request.id, new RpcError(RPC.internalError, "The server does not read.")));
  }

  async #mismatchIn({ params }: Pending["request"], header: HeaderOf, about: About): Promise<RpcError | null> {
    this.#tools ??= this.#readTools(about);
    const headers = (await this.#tools).get(String(params?.name));
    if (headers === undefined) return null;
    try {
      mustAgree(headers, params, header);
      return null;
    } catch (error) {
      if (error instanceof RpcError) return error;
      throw error;
    }
  }

  /** The arguments of each tool that are also sent as HTTP headers. Empty for a server that does not list its tools. */
  async #readTools(about: About): Promise<Map<string, ParamHeaders>> {
    const found = new Map<string, ParamHeaders>();
    let cursor: unknown;
    for (let page = 0; page < TOOL_PAGES_MAX; page += 1) {
      const params = { _meta: ENVELOPE, ...(cursor === undefined ? {} : { cursor }) };
      const request = { id: "tools", method: "tools/list", params };
      const { result } = await new Promise<Message>((resolve) => this.#send(request, about, null, resolve));
      for (const tool of (result?.tools ?? []) as { name: string; inputSchema: unknown }[])
        found.set(tool.name, paramHeadersOf(tool.inputSchema));
      cursor = result?.nextCursor;
      if (cursor === undefined) break;
    }
    return found;
  }

  /** Cancels the client's requests: in this protocol a disconnect means that the client no longer wants the answer. */
  forget(answer: PostAnswer): void {
    this.#listeners.forget(answer);
    for (const [id, pending] of this.#pending) {
      if (pending.answer !== answer) continue;
      this.#pending.delete(id);
      this.#child?.send({
        method: "notifications/cancelled",
        params: { requestId: id, reason: "The client has left." },
      });
    }
  }

  stop(): void {
    this.#child?.stop();
    this.#over("it was stopped");
  }

  #start(): Promise<About> {
    const { promise, resolve, reject } = Promise.withResolvers<About>();
    const opening = { resolve, reject, greeted: false };
    this.#opening = opening;
    this.#spawn();
    const probe = setTimeout(() => this.#initialize(), PROBE_MS);
    const timer = setTimeout(() => {
      this.#child?.stop();
      this.#over(`it did not answer initialize within ${OPENING_MS / 1000} s`);
    }, OPENING_MS);
    return promise.finally(() => {
      clearTimeout(probe);
      clearTimeout(timer);
      this.#opening = null;
    });
  }

  #spawn(): void {
    this.#child = new StdioChild(this.#argv, {
      onMessage: (message) => this.#fromServer(message),
      onExit: (how) => this.#ended(how),
    });
    if (this.#handshakeOnly) this.#initialize();
    else this.#child.send({ id: DISCOVER_ID, method: "server/discover", params: { _meta: ENVELOPE } });
  }

  #initialize(): void {
    if (this.#opening === null || this.#opening.greeted) return;
    this.#opening.greeted = true;
    const params = { protocolVersion: HANDSHAKE_VERSIONS[0], capabilities: {}, clientInfo: CLIENT };
    this.#child?.send({ id: INITIALIZE_ID, method: "initialize", params });
  }

  #ended(how: string): void {
    if (this.#opening === null || this.#opening.greeted) this.#over(how);
    else {
      // Some servers exit when the first message is not `initialize`.
      this.#handshakeOnly = true;
      this.#spawn();
    }
  }

  #fromServer(message: Message): void {
    this.#rest();
    if (isRequest(message)) {
      // The bridge declared no client capabilities, so the server may not send requests.
      this.#child?.send(failure(message.id, new RpcError(RPC.methodNotFound, `There is no ${message.method} here.`)));
    } else if (!isAnswer(message)) this.#notification(message);
    else if (message.id === DISCOVER_ID) this.#discovered(message);
    else if (message.id === INITIALIZE_ID) this.#greeted(message);
    else this.#answer(message);
  }

  /** Sends a notification to the request that its progress token or subscription id names. */
  #notification(message: Message): void {
    if (message.method === "notifications/tools/list_changed") this.#tools = null;
    const { progressToken, ...params } = message.params ?? {};
    const subscription = metaOf(params)?.[META.subscription];
    const { request, answer } = this.#pending.get(Number(progressToken ?? subscription)) ?? {};
    if (request === undefined) this.#listeners.tell(message);
    else if (progressToken !== undefined)
      answer?.say({ ...message, params: { ...params, progressToken: metaOf(request.params)?.progressToken } });
    else
      answer?.say({ ...message, params: { ...params, _meta: { ...metaOf(params), [META.subscription]: request.id } } });
  }

  #discovered({ result }: Message): void {
    const versions = result?.supportedVersions;
    if (Array.isArray(versions) && versions.includes(STATELESS))
      this.#opening?.resolve({ ...(result as unknown as About), era: "sessionless" });
    else this.#initialize();
  }

  #greeted({ error, result }: Message): void {
    if (this.#opening === null) return;
    if (error !== undefined) {
      this.#child?.stop();
      this.#over(`it refused initialize: ${error.message}`);
      return;
    }
    this.#child?.send({ method: "notifications/initialized" });
    this.#opening.resolve({ ...(result as unknown as About), era: "handshake" });
  }

  #answer(message: Message): void {
    const pending = this.#pending.get(Number(message.id));
    this.#pending.delete(Number(message.id));
    pending?.settle(message);
  }

  #over(how: string): void {
    const why = `The server has ended (${how}).`;
    if (this.#restTimer !== null) clearTimeout(this.#restTimer);
    this.#child = null;
    this.#about = null;
    this.#opening?.reject(new Error(why));
    this.#tools = null;
    for (const { request, settle } of this.#pending.values())
      settle(failure(request.id, new RpcError(RPC.internalError, why)));
    this.#pending.clear();
    this.#listeners.end();
  }

  #rest(): void {
    if (this.#restTimer !== null) clearTimeout(this.#restTimer);
    const idle = (): boolean => this.#pending.size + this.#listeners.size === 0;
    this.#restTimer = setTimeout(() => (idle() ? this.stop() : this.#rest()), REST_AFTER_MS);
    this.#restTimer.unref();
  }
}

/** HTTP status by error code; 200 for all others. */
const STATUS_OF: Record<number, number> = { [RPC.methodNotFound]: 404, [RPC.missingCapability]: 400 };

const ENVELOPE = { [META.version]: STATELESS, [META.clientCapabilities]: {}, [META.client]: CLIENT };

/** Sends the server's answer in the form of the sessionless protocol. */
function finish(answer: PostAnswer, { id, method }: Pending["request"], given: Message, about: About): void {
  const { result = {}, error } = given;
  if (error !== undefined) {
    answer.finish({ jsonrpc: "2.0", id, error }, STATUS_OF[error.code]);
    return;
  }
  const meta = metaOf(result) ?? {};
  const tag = meta[META.subscription] === undefined ? {} : { [META.subscription]: id };
  // Clients open sessions with the bridge, so its versions count and not the server's.
  const versions = method === "server/discover" ? { supportedVersions: VERSIONS } : {};
  if (about.era === "sessionless") {
    answer.finish(answered(id, { ...result, ...versions, _meta: { ...meta, ...tag } }));
    return;
  }
  const added = { resultType: "complete", ...(CACHEABLE.test(method) ? CACHE : {}) };
  answer.finish(answered(id, { ...added, ...result, _meta: { [META.server]: about.serverInfo, ...meta } }));
}

const answered = (id: string | number, result: Record<string, unknown>): Message => ({ jsonrpc: "2.0", id, result });

const discovery = ({ serverInfo, capabilities, instructions }: About): Record<string, unknown> => ({
  resultType: "complete",
  supportedVersions: VERSIONS,
  capabilities: withoutSubscriptions(capabilities),
  serverInfo,
  ...(instructions === undefined ? {} : { instructions }),
  ttlMs: DISCOVERY_TTL_MS,
  cacheScope: "private",
  _meta: { [META.server]: serverInfo },
});

/** Removes the capability to subscribe to single resources, which needs a session. */
function withoutSubscriptions({ resources, ...others }: Record<string, unknown>): Record<string, unknown> {
  if (resources === undefined) return others;
  const { subscribe: _subscribe, ...kept } = resources as Record<string, unknown>;
  return { ...others, resources: kept };
}

/**
 * Replaces the progress token with the bridge's own and, for a handshake child, removes fields of the newer protocol.
 */
function forChild(params: Record<string, unknown> | undefined, id: number, { era }: About): Record<string, unknown> {
  const { progressToken, ...meta } = metaOf(params) ?? {};
  const kept = Object.entries(meta).filter(([key]) => era === "sessionless" || !key.startsWith(META.prefix));
  if (progressToken !== undefined) kept.push(["progressToken", id]);
  const { _meta, ...rest } = params ?? {};
  return kept.length === 0 ? rest : { ...rest, _meta: Object.fromEntries(kept) };
}
