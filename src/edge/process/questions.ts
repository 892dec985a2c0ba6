/** Asks the owner and waits for its answers. When the owner is gone, every question fails. */
import { GatewayError } from "../../contract/gateway-errors.ts";
import type { FromEdge, FromOwner, QuestionName, Questions } from "../messages.ts";

export interface Answered<N extends QuestionName> {
  value: Questions[N][1];
  /** Whether the answer may be kept. */
  fresh: boolean;
}

export type Ask = <N extends QuestionName>(name: N, asked: Questions[N][0]) => Promise<Answered<N>>;

interface Waiting {
  resolve(answered: { value: unknown; fresh: boolean }): void;
  reject(error: Error): void;
}

const ownerGone = (): GatewayError =>
  new GatewayError("SHUTTING_DOWN", "The server is restarting.", { headers: { "retry-after": "1" } });

type Send = (message: Extract<FromEdge, { type: "ask" }>) => void;

export class Asking {
  readonly #send: Send;
  readonly #waiting = new Map<number, Waiting>();
  #last = 0;
  #gone = false;

  constructor(send: Send) {
    this.#send = send;
  }

  ask: Ask = (name, asked) => {
    if (this.#gone) return Promise.reject(ownerGone());
    this.#last += 1;
    const id = this.#last;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve: resolve as Waiting["resolve"], reject });
      this.#send({ type: "ask", id, name, asked });
    });
  };

  /** Settles the question that this message answers. */
  settle(message: Extract<FromOwner, { type: "answer" | "failure" }>): void {
    const waiting = this.#waiting.get(message.id);
    this.#waiting.delete(message.id);
    if (message.type === "answer") waiting?.resolve(message);
    else waiting?.reject(new Error(message.message));
  }

  /** The owner is gone: nothing will be answered. */
  end(): void {
    this.#gone = true;
    for (const { reject } of this.#waiting.values()) reject(ownerGone());
    this.#waiting.clear();
  }
}
