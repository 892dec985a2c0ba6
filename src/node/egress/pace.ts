/**
 * Bandwidth limits in the proxy: one pace for each direction of a workload, which all its connections share. Bytes that
 * have arrived are passed on at once, and then the source is left unread until they are paid for.
 */
import type { Duplex, Readable, Writable } from "node:stream";
import { type Bandwidth, bytesPerSecond } from "../../lib/network/egress/bandwidth.ts";

/** Bytes of so long may leave at once after a rest; a page of HTTP does not wait. */
const BURST_MS = 100;
/** A changed limit holds for waiting connections after at most this time. */
const LOOK_AGAIN_MS = 250;

export class Pace {
  readonly #now: () => number;
  #bytesPerMs: number | null = null;
  /** When everything that was taken is paid for. */
  #paidAtMs = 0;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Null: no limit. Other than that, bytes that were taken before are forgotten when the limit changes. */
  set(mbps: number | null): void {
    const bytesPerMs = mbps === null ? null : bytesPerSecond(mbps) / 1000;
    if (bytesPerMs === this.#bytesPerMs) return;
    this.#bytesPerMs = bytesPerMs;
    this.#paidAtMs = 0;
  }

  take(bytes: number): void {
    if (this.#bytesPerMs === null) return;
    this.#paidAtMs = Math.max(this.#paidAtMs, this.#now() - BURST_MS) + bytes / this.#bytesPerMs;
  }

  /** How long the next bytes have to wait; 0 = not at all. */
  get waitMs(): number {
    return this.#bytesPerMs === null ? 0 : Math.max(0, this.#paidAtMs - this.#now());
  }
}

export interface Paces {
  send: Pace;
  receive: Pace;
}

export const newPaces = (): Paces => ({ send: new Pace(), receive: new Pace() });

export function setPaces({ send, receive }: Paces, bandwidth: Bandwidth | null): void {
  send.set(bandwidth?.sendMbps ?? null);
  receive.set(bandwidth?.receiveMbps ?? null);
}

/** Like `from.pipe(to)`, at this pace. Returns a function that ends it and leaves both streams as they are. */
export function flow(from: Readable, to: Writable, pace: Pace): () => void {
  let isFull = to.writableNeedDrain === true;
  let timer: NodeJS.Timeout | null = null;
  const goOn = (): void => {
    if (isFull || timer !== null) return;
    const { waitMs } = pace;
    if (waitMs > 0) wait(waitMs);
    else from.resume();
  };
  const wait = (waitMs: number): void => {
    timer = setTimeout(
      () => {
        timer = null;
        goOn();
      },
      Math.min(waitMs, LOOK_AGAIN_MS),
    );
  };
  const onData = (chunk: Buffer): void => {
    pace.take(chunk.length);
    isFull = !to.write(chunk);
    const { waitMs } = pace;
    if (!isFull && waitMs === 0) return;
    from.pause();
    if (waitMs > 0 && timer === null) wait(waitMs);
  };
  const onDrain = (): void => {
    isFull = false;
    goOn();
  };
  const onEnd = (): void => void to.end();
  const stop = (): void => {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    from.removeListener("data", onData);
    from.removeListener("end", onEnd);
    from.removeListener("close", stop);
    to.removeListener("drain", onDrain);
    to.removeListener("close", stop);
  };
  from.on("data", onData);
  if (from.readableEnded) process.nextTick(onEnd);
  else from.once("end", onEnd);
  from.once("close", stop);
  to.on("drain", onDrain);
  to.once("close", stop);
  goOn();
  return stop;
}

/** Copies both ways until either side is gone. */
export function join(client: Duplex, upstream: Duplex, { send, receive }: Paces): void {
  upstream.once("error", () => client.destroy());
  upstream.once("close", () => client.destroy());
  client.once("close", () => upstream.destroy());
  flow(client, upstream, send);
  flow(upstream, client, receive);
}
