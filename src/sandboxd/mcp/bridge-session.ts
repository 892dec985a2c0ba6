/**
 * One session of a client that began with `initialize`: a child of its own, whose messages pass unchanged in both
 * directions. What the server says without being asked goes to the client's listening stream, or else along with an
 * answer that is still owed; what nobody can take is kept a little. Streams can be resumed.
 */
import { randomUUID } from "node:crypto";
import type { ServerResponse } from "node:http";
import { failure, RPC, RpcError } from "../../lib/mcp/wire.ts";
import { isAnswer, isRequest, type Message, StdioChild } from "./stdio-child.ts";
import { PostAnswer } from "./stream.ts";
import { StreamLogs } from "./stream-log.ts";

export const SESSION_HEADER = "Mcp-Session-Id";
/** Requests under way; more of one client at once are not work but a fault. */
const PENDING_MAX = 256;

interface Pending {
  answer: PostAnswer;
  progressToken: unknown;
}

/** What a request says about how it may be answered. */
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

  /** Nobody waits for it and nobody listens. */
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

  /** A notification, or the client's answer to a question of the server. */
  tell(message: Message): void {
    this.lastUsedMs = Date.now();
    this.#child.send(message);
  }

  /** Opens the listening stream, or goes on with the one that an event came on. */
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

  /** Whose answer a message belongs with: progress names it, and a question comes of what was asked last. */
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

/** 1 and "1" are two ids. */
const keyOf = (id: unknown): string => JSON.stringify(id ?? null);
