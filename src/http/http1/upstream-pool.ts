/**
 * Connections to workloads, kept for reuse under the key of the instance they lead to. Only idle ones are held here;
 * a busy one belongs to its exchange. Requests never wait for a connection and never share one.
 */
import type { Duplex } from "node:stream";
import type { Sweepable } from "../../lib/sweeper.ts";
import { type ConnectionOwner, UpstreamConnection } from "./upstream-connection.ts";

/**
 * Idle timeout of pooled connections. Common servers close after 5 s (Node) or later; closing earlier than they do
 * avoids writing a request into a connection that is being closed.
 */
const IDLE_MAX_MS = 4000;
/** Subtracted from an idle timeout that the workload announces. */
const IDLE_MARGIN_MS = 1000;
/** Idle connections per instance: enough for a burst, few enough for thousands of workloads. */
const IDLE_PER_KEY_MAX = 256;

export class TooManyConnections extends Error {}

export class UpstreamPool implements ConnectionOwner, Sweepable {
  #idle = new Map<string, UpstreamConnection[]>();
  #open = new Map<string, number>();
  #perKeyMax: number;
  #idleMaxMs: number;
  #now: () => number;
  #stopped = false;

  /** `idleMaxMs` applies to servers that announce no idle timeout. */
  constructor(options: { perKeyMax: number; idleMaxMs?: number; now: () => number }) {
    this.#perKeyMax = options.perKeyMax;
    this.#idleMaxMs = options.idleMaxMs ?? IDLE_MAX_MS;
    this.#now = options.now;
  }

  /** The most recently used idle connection; null when none was used within `idleMaxMs`. */
  take(key: string, idleMaxMs: number): UpstreamConnection | null {
    const kept = this.#idle.get(key);
    if (kept === undefined) return null;
    const now = this.#now();
    for (let connection = kept.pop(); connection !== undefined; connection = kept.pop()) {
      if (connection.stream.destroyed) continue;
      if (now - connection.idleSinceMs <= Math.min(idleMaxMs, this.#idleMaxOf(connection))) return connection;
      kept.push(connection); // still usable for a request that can be sent twice
      return null;
    }
    return null;
  }

  async open(key: string, dial: () => Promise<Duplex>): Promise<UpstreamConnection> {
    const count = this.#open.get(key) ?? 0;
    if (count >= this.#perKeyMax) throw new TooManyConnections(`more than ${this.#perKeyMax} connections`);
    this.#open.set(key, count + 1);
    try {
      return new UpstreamConnection(key, await dial(), this);
    } catch (error) {
      this.#forget(key);
      throw error;
    }
  }

  onIdle(connection: UpstreamConnection): void {
    connection.idleSinceMs = this.#now();
    const kept = this.#idle.get(connection.key);
    if (this.#stopped || (kept !== undefined && kept.length >= IDLE_PER_KEY_MAX)) connection.destroy();
    else if (kept === undefined) this.#idle.set(connection.key, [connection]);
    else kept.push(connection);
  }

  onClosed(connection: UpstreamConnection): void {
    this.#forget(connection.key);
    const kept = this.#idle.get(connection.key);
    const at = kept?.indexOf(connection) ?? -1;
    if (kept === undefined || at < 0) return;
    kept.splice(at, 1);
    if (kept.length === 0) this.#idle.delete(connection.key);
  }

  onUpgradedClosed(key: string): void {
    this.#forget(key);
  }

  sweep(nowMs: number): void {
    for (const [key, kept] of this.#idle) {
      const fresh = kept.filter((connection) => {
        const stale = nowMs - connection.idleSinceMs > this.#idleMaxOf(connection);
        if (stale) connection.destroy();
        return !stale;
      });
      if (fresh.length === 0) this.#idle.delete(key);
      else if (fresh.length < kept.length) this.#idle.set(key, fresh);
    }
  }

  close(): void {
    this.#stopped = true;
    for (const kept of this.#idle.values()) for (const connection of [...kept]) connection.destroy();
    this.#idle.clear();
  }

  get idleCount(): number {
    let count = 0;
    for (const kept of this.#idle.values()) count += kept.length;
    return count;
  }

  get openCount(): number {
    let count = 0;
    for (const open of this.#open.values()) count += open;
    return count;
  }

  #idleMaxOf({ keepAliveSeconds }: UpstreamConnection): number {
    if (keepAliveSeconds === null) return this.#idleMaxMs;
    return Math.min(60_000, Math.max(0, keepAliveSeconds * 1000 - IDLE_MARGIN_MS));
  }

  #forget(key: string): void {
    const left = (this.#open.get(key) ?? 1) - 1;
    if (left > 0) this.#open.set(key, left);
    else this.#open.delete(key);
  }
}
