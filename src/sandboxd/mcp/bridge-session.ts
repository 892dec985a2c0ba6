/**
 * One session of a client that began with `initialize`: a child process of its own, whose messages pass unchanged in
 * both directions. A message that the server sends unasked goes to the client's listening stream, else along with a
 * pending answer; when there is neither, it is kept for a while. Streams can be resumed.
 */
import { randomUUID } from "node:crypto";
import type { ServerResponse } from "node:http";
import { failure, RPC, RpcError } from "../../lib/mcp/wire.ts";
import { isAnswer, isRequest, type Message, StdioChild } from "./stdio-child.ts";
import { PostAnswer } from "./stream.ts";
import { StreamLogs } from "./stream-log.ts";

export const SESSION_HEADER = "Mcp-Session-Id";
/** Most pending requests of one client; more are a fault of the client. */
const PENDING_MAX = 256;

interface Pending {
  answer: PostAnswer;
  progressToken: unknown;
}

/** How the client accepts the answer to its request. */
export interface Accepts {
  takesStream: boolean;
  version: string | undefined;
  lastEventId: string | undefined;
}

export class BridgeSession {
  readonly id = randomUUID();
  lastUsedMs = Date.now();
  readonly #child: StdioChild;
  readonly #pending = new Map<string, Pending>();
  readonly #onOver: (session: BridgeSession) => void;
  readonly #streams = new StreamLogs();
  readonly #listening = this.#streams.make();

  constructor(argv: readonly string[], onOver: (session: BridgeSession) => void) {
    this.#onOver = onOver;
    this.#child = new StdioChild(argv, {
      onMessage: (message) => this.#fromServer(message),
      onExit: (how) => this.#end(`The server has ended (${how}).`),
    });
  }

  /** True when no request is pending and no client listens. */
  get idle(): boolean {
    return this.#pending.size === 0 && !this.#listening.attached;
  }

  ask(request: Message & { id: string | number; method: string }, res: ServerResponse, accepts: Accepts): void {
    this.lastUsedMs = Date.now();
    const answer = new PostAnswer(res, {
      headers: { [SESSION_HEADER]: this.id },
      takesStream: accepts.takesStream,
      open: (to, headers) => {
        const log = this.#streams.make();
        log.attach(to, headers, accepts.version);
        return log;
      },
    });
    const key = keyOf(request.id);
    const refused = this.#pending.has(key)
      ? "A request with this id is under way."
      : this.#pending.size >= PENDING_MAX
        ? `At most ${PENDING_MAX} requests are answered at a time.`
        : null;
    if (refused !== null) {
      answer.finish(failure(request.id, new RpcError(RPC.invalidRequest, refused)), 400);
      return;
    }
    const meta = request.params?._meta as { progressToken?: unknown } | undefined;
    this.#pending.set(key, { answer, progressToken: meta?.progressToken });
    if (!this.#child.send(request)) this.#end("The server no longer reads.");
  }

  /** Passes on a notification, or the client's answer to a request of the server. */
  tell(message: Message): void {
    this.lastUsedMs = Date.now();
    this.#child.send(message);
  }

  /** Opens the listening stream, or resumes the stream that `lastEventId` belongs to. */
  listen(res: ServerResponse, { version, lastEventId }: Accepts): "listens" | "taken" | "forgotten" {
    const resumed = lastEventId === undefined ? undefined : this.#streams.find(lastEventId);
    if (resumed === null) return "forgotten";
    if (resumed === undefined && this.#listening.attached) return "taken";
    this.lastUsedMs = Date.now();
    const { log, after } = resumed ?? { log: this.#listening, after: undefined };
    res.once("close", () => {
      this.lastUsedMs = Date.now();
    });
    log.attach(res, { [SESSION_HEADER]: this.id }, version, after);
    return "listens";
  }

  close(): void {
    this.#child.stop();
    this.#end("The session has ended.");
  }

  #fromServer(message: Message): void {
    this.lastUsedMs = Date.now();
    if (isAnswer(message)) {
      const pending = this.#pending.get(keyOf(message.id));
      this.#pending.delete(keyOf(message.id));
      pending?.answer.finish(message);
      return;
    }
    if (this.#ownersOf(message).some(({ answer }) => answer.say(message))) return;
    const isTaken = !this.#listening.attached && [...this.#pending.values()].some(({ answer }) => answer.say(message));
    if (!isTaken) this.#listening.add(message);
  }

  /**
   * The requests whose answer may carry the message: those with its progress token, or for a request of the server the
   * newest first.
   */
  #ownersOf(message: Message): Pending[] {
    const pending = [...this.#pending.values()];
    if (isRequest(message)) return pending.reverse();
    const token = message.method === "notifications/progress" ? message.params?.progressToken : undefined;
    return token === undefined ? [] : pending.filter(({ progressToken }) => progressToken === token);
  }

  #end(why: string): void {
    this.#child.stop();
    for (const [key, { answer }] of this.#pending)
      answer.finish(failure(JSON.parse(key), new RpcError(RPC.internalError, why)));
    this.#pending.clear();
    this.#listening.end();
    this.#onOver(this);
  }
}

/** The ids 1 and "1" are different. */
const keyOf = (id: unknown): string => JSON.stringify(id ?? null);
