/**
 * Subscriptions of sessionless clients to an MCP server that only knows the handshake protocol. Such a server sends a
 * change notification to no client in particular; each client that subscribed to that kind gets it.
 */
import { META } from "../../lib/mcp/wire.ts";
import type { Message } from "./stdio-child.ts";
import type { PostAnswer } from "./stream.ts";

/** Subscription kinds of the sessionless protocol, and the notification of each. */
const KINDS: Record<string, string> = {
  toolsListChanged: "notifications/tools/list_changed",
  promptsListChanged: "notifications/prompts/list_changed",
  resourcesListChanged: "notifications/resources/list_changed",
};

interface Listener {
  id: string | number;
  methods: Set<string>;
}

export class BridgeListeners {
  readonly #listeners = new Map<PostAnswer, Listener>();

  get size(): number {
    return this.#listeners.size;
  }

  add({ id, params }: Message & { id: string | number }, answer: PostAnswer): void {
    const wanted = (params?.notifications ?? {}) as Record<string, unknown>;
    const kept = Object.keys(KINDS).filter((kind) => wanted[kind] === true);
    this.#listeners.set(answer, { id, methods: new Set(kept.map((kind) => KINDS[kind] as string)) });
    const notifications = Object.fromEntries(kept.map((kind) => [kind, true]));
    answer.say(tagged({ method: "notifications/subscriptions/acknowledged", params: { notifications } }, id));
  }

  forget(answer: PostAnswer): void {
    this.#listeners.delete(answer);
  }

  tell(message: Message): void {
    for (const [answer, { id, methods }] of this.#listeners)
      if (methods.has(message.method ?? "")) answer.say(tagged(message, id));
  }

  /** Ends all subscriptions, because the server has gone. Clients may subscribe again. */
  end(): void {
    for (const [answer, { id }] of this.#listeners)
      answer.finish({ jsonrpc: "2.0", id, result: { resultType: "complete", _meta: { [META.subscription]: id } } });
    this.#listeners.clear();
  }
}

const tagged = (message: Message, id: string | number): Message => ({
  jsonrpc: "2.0",
  ...message,
  params: { ...message.params, _meta: { ...(message.params?._meta as object | undefined), [META.subscription]: id } },
});
