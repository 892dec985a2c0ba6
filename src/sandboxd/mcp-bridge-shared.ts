/**
 * The child that answers clients of the sessionless protocol: one for all of them, since their requests stand for
 * themselves. The child itself may only know the handshake, which is done here once; ids and progress tokens are ours, so
 * that clients cannot meet in them, and results get what the newer protocol adds.
 *
 * Modes: resting (no child) -> starting -> ready -> resting, when it ends or nobody has asked for a while.
 */
import { failure, HANDSHAKE_VERSIONS, META, metaOf, RPC, RpcError, VERSIONS } from "../lib/mcp-wire.ts";
import type { PostAnswer } from "./mcp-stream.ts";
import { isAnswer, isRequest, type Message, StdioChild } from "./stdio-child.ts";
import { VERSION } from "./version.ts";

/** A command that is fetched at its first start may take a while. */
const HANDSHAKE_MS = 50_000;
const REST_AFTER_MS = 5 * 60_000;
const DISCOVERY_TTL_MS = 3_600_000;
/** Requests of all clients under way. */
const PENDING_MAX = 1024;
/** Lists may change and may be for one client alone. */
const CACHE = { ttlMs: 0, cacheScope: "private" };
const CACHEABLE = /^(tools|prompts|resources|resources\/templates)\/list$|^resources\/read$/;
/** Belong to sessions, or ask for what a child without them cannot do. */
const NOT_HERE = new Set(["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"]);

interface About {
  serverInfo: unknown;
  capabilities: unknown;
  instructions?: unknown;
}

interface Pending {
  request: Message & { id: string | number; method: string };
  answer: PostAnswer;
  about: About;
}

export class SharedChild {
  readonly #argv: readonly string[];
  #child: StdioChild | null = null;
  #about: Promise<About> | null = null;
  #greeted: { resolve(about: About): void; reject(error: Error): void } | null = null;
  #pending = new Map<number, Pending>();
  #nextId = 1;
  #restTimer: NodeJS.Timeout | null = null;

  constructor(argv: readonly string[]) {
    this.#argv = argv;
  }

  /** Who the server says it is; starts it when it does not run. */
  ready(): Promise<About> {
    this.#about ??= this.#start();
    return this.#about;
  }

  async ask(request: Message & { id: string | number; method: string }, answer: PostAnswer): Promise<void> {
    const refuse = (code: number, why: string, status: number): void =>
      answer.finish(failure(request.id, new RpcError(code, why)), status);
    const about = await this.ready().catch((error: Error) => error);
    if (about instanceof Error) refuse(RPC.internalError, about.message, 200);
    else if (request.method === "server/discover") answer.finish(answered(request.id, discovery(about)));
    else if (NOT_HERE.has(request.method)) refuse(RPC.methodNotFound, `There is no ${request.method} here.`, 404);
    else if (this.#pending.size >= PENDING_MAX) refuse(RPC.internalError, "Too many requests are under way.", 503);
    else {
      const id = this.#nextId++;
      this.#pending.set(id, { request, answer, about });
      this.#child?.send({ id, method: request.method, params: forChild(request.params, id) });
    }
  }

  /** The client has left, which in this protocol means that it no longer wants to know. */
  forget(answer: PostAnswer): void {
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
    this.#greeted = { resolve, reject };
    this.#child = new StdioChild(this.#argv, {
      onMessage: (message) => this.#fromServer(message),
      onExit: (how) => this.#over(how),
    });
    const timer = setTimeout(() => {
      this.#child?.stop();
      this.#over(`it did not answer initialize within ${HANDSHAKE_MS / 1000} s`);
    }, HANDSHAKE_MS);
    this.#child.send({
      id: 0,
      method: "initialize",
      params: {
        protocolVersion: HANDSHAKE_VERSIONS[0],
        capabilities: {},
        clientInfo: { name: "bridge", version: VERSION },
      },
    });
    return promise.finally(() => clearTimeout(timer));
  }

  #fromServer(message: Message): void {
    this.#rest();
    if (isRequest(message)) {
      // It was told that this client can do nothing of the kind.
      this.#child?.send(failure(message.id, new RpcError(RPC.methodNotFound, `There is no ${message.method} here.`)));
    } else if (!isAnswer(message)) this.#progress(message);
    else if (this.#greeted !== null && message.id === 0) this.#greet(message);
    else this.#answer(message);
  }

  #progress(message: Message): void {
    const token = message.params?.progressToken;
    const pending = typeof token === "number" ? this.#pending.get(token) : undefined;
    const wanted = pending && metaOf(pending.request.params)?.progressToken;
    if (pending === undefined || wanted === undefined) return;
    pending.answer.say({ ...message, params: { ...message.params, progressToken: wanted } });
  }

  #greet(message: Message): void {
    const { error, result } = message;
    if (error !== undefined) {
      this.#child?.stop();
      this.#over(`it refused initialize: ${error.message}`);
      return;
    }
    this.#child?.send({ method: "notifications/initialized" });
    this.#greeted?.resolve(result as unknown as About);
    this.#greeted = null;
  }

  #answer({ id, result, error }: Message): void {
    const pending = this.#pending.get(Number(id));
    this.#pending.delete(Number(id));
    if (pending === undefined) return;
    const { request, answer, about } = pending;
    if (error !== undefined) {
      answer.finish({ jsonrpc: "2.0", id: request.id, error }, error.code === RPC.methodNotFound ? 404 : 200);
      return;
    }
    answer.finish(
      answered(request.id, {
        resultType: "complete",
        ...(CACHEABLE.test(request.method) ? CACHE : {}),
        ...result,
        _meta: { [META.server]: about.serverInfo, ...metaOf(result) },
      }),
    );
  }

  #over(how: string): void {
    const why = `The server has ended (${how}).`;
    if (this.#restTimer !== null) clearTimeout(this.#restTimer);
    this.#child = null;
    this.#about = null;
    this.#greeted?.reject(new Error(why));
    this.#greeted = null;
    for (const { request, answer } of this.#pending.values())
      answer.finish(failure(request.id, new RpcError(RPC.internalError, why)));
    this.#pending.clear();
  }

  #rest(): void {
    if (this.#restTimer !== null) clearTimeout(this.#restTimer);
    this.#restTimer = setTimeout(() => (this.#pending.size === 0 ? this.stop() : this.#rest()), REST_AFTER_MS);
    this.#restTimer.unref();
  }
}

const answered = (id: string | number, result: Record<string, unknown>): Message => ({ jsonrpc: "2.0", id, result });

const discovery = ({ serverInfo, capabilities, instructions }: About): Record<string, unknown> => ({
  resultType: "complete",
  supportedVersions: VERSIONS,
  capabilities,
  serverInfo,
  ...(instructions === undefined ? {} : { instructions }),
  ttlMs: DISCOVERY_TTL_MS,
  cacheScope: "private",
  _meta: { [META.server]: serverInfo },
});

/** Without what only the newer protocol knows, and with a token by which its progress is found. */
function forChild(params: Record<string, unknown> | undefined, id: number): Record<string, unknown> {
  const meta = metaOf(params) ?? {};
  const kept = Object.entries(meta).filter(([key]) => !key.startsWith("io.modelcontextprotocol/"));
  if (meta.progressToken !== undefined) kept.push(["progressToken", id]);
  const { _meta, ...rest } = params ?? {};
  return kept.length === 0 ? rest : { ...rest, _meta: Object.fromEntries(kept) };
}
