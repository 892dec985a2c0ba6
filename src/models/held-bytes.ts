import { GatewayError } from "../contract/gateway-errors.ts";

/** Bytes of all requests and answers held at one time, so that many large ones cannot fill the memory together. */
export class HeldBytes {
  readonly #max: number;
  #now = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get now(): number {
    return this.#now;
  }

  /** False when there is no room left. */
  take(bytes: number): boolean {
    if (this.#now + bytes > this.#max) return false;
    this.#now += bytes;
    return true;
  }

  release(bytes: number): void {
    this.#now -= bytes;
  }
}

export const noRoom = (): GatewayError =>
  new GatewayError("OVERLOADED", undefined, { headers: { "retry-after": "1" } });
