/**
 * Two connections joined as raw bytes, after an upgrade: each side is read only as fast as the other one takes, an
 * end of one direction is passed on while the other may go on, and an error of either ends both.
 */
import type { Duplex } from "node:stream";
import type { Sweepable, Sweeper } from "../lib/sweeper.ts";
import type { OpenRight, Revocable } from "./open-rights.ts";

/**
 * Longest silence after one side has ended. A client that is gone looks like one that only listens, so a workload that
 * does not end its side would keep both connections for the whole idle time.
 */
const HALF_OPEN_IDLE_MS = 60_000;

export interface TunnelEnd {
  bytesIn: number;
  bytesOut: number;
  reason: "closed" | "idle" | "duration" | "revoked";
}

export interface TunnelOptions {
  client: Duplex;
  workload: Duplex;
  /** Longest time without a byte from either side; null for no limit. */
  idleMs: number | null;
  totalMs: number | null;
  sweeper: Sweeper;
  right?: OpenRight | null;
  done(end: TunnelEnd): void;
}

export class Tunnel implements Sweepable, Revocable {
  #options: TunnelOptions;
  #startedMs: number;
  #lastByteMs: number;
  #bytesIn = 0;
  #bytesOut = 0;
  #open = 2;
  #over = false;

  constructor(options: TunnelOptions) {
    this.#options = options;
    this.#startedMs = options.sweeper.now;
    this.#lastByteMs = this.#startedMs;
  }

  /** `early` are bytes of either side that arrived before the tunnel started. */
  start(early: { fromClient: Buffer; fromWorkload: Buffer }): void {
    const { client, workload, sweeper } = this.#options;
    sweeper.add(this);
    this.#join(client, workload);
    this.#join(workload, client);
    if (early.fromWorkload.length > 0) this.#pass(workload, client, early.fromWorkload);
    if (early.fromClient.length > 0) this.#pass(client, workload, early.fromClient);
  }

  get right(): OpenRight | null {
    return this.#options.right ?? null;
  }

  revoke(): void {
    this.close("revoked");
  }

  close(reason: TunnelEnd["reason"] = "closed"): void {
    if (this.#over) return;
    this.#over = true;
    const { client, workload, sweeper, done } = this.#options;
    sweeper.delete(this);
    client.destroy();
    workload.destroy();
    done({ bytesIn: this.#bytesIn, bytesOut: this.#bytesOut, reason });
  }

  sweep(nowMs: number): void {
    const { idleMs, totalMs } = this.#options;
    if (totalMs !== null && nowMs - this.#startedMs > totalMs) this.close("duration");
    else if (idleMs !== null && nowMs - this.#lastByteMs > this.#idleMaxMs(idleMs)) this.close("idle");
  }

  #idleMaxMs(idleMs: number): number {
    return this.#open === 2 ? idleMs : Math.min(idleMs, HALF_OPEN_IDLE_MS);
  }

  /** A server has thousands of idle tunnels, so each listener costs memory. */
  #join(from: Duplex, to: Duplex): void {
    from.on("data", (chunk: Buffer) => this.#pass(from, to, chunk));
    to.on("drain", () => from.resume());
    from.on("end", () => {
      this.#open -= 1;
      to.end();
      if (this.#open === 0) this.#closeWhenFlushed();
    });
    from.on("error", ignore);
    from.on("close", () => {
      if (!from.readableEnded || from.errored !== null) this.close();
    });
    from.resume();
  }

  #pass(from: Duplex, to: Duplex, chunk: Buffer): void {
    const { sweeper, client } = this.#options;
    this.#lastByteMs = sweeper.now;
    if (from === client) this.#bytesIn += chunk.length;
    else this.#bytesOut += chunk.length;
    if (!to.write(chunk)) from.pause();
  }

  /** Both sides have ended; the last writes may still be in flight. */
  #closeWhenFlushed(): void {
    const { client, workload } = this.#options;
    let waiting = 2;
    for (const stream of [client, workload]) {
      const flushed = (): void => {
        waiting -= 1;
        if (waiting === 0) this.close();
      };
      if (stream.writableFinished || stream.destroyed) flushed();
      else stream.once("finish", flushed);
    }
  }
}

// A broken connection is reported by "close".
const ignore = (): void => {};
