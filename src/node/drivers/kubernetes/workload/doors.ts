/** The port on which workloads call this server: the platform's own address inside a workload, and the way out. */
import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { DOOR_CONNECTIONS_MAX } from "../../../../contract/sandbox-wire.ts";
import { openGate } from "../../../../lib/network/gate/handshake.ts";
import type { Lives } from "./lives.ts";
import { type Door, doorIn, type Tokens } from "./tokens.ts";

export type OnDoor = Record<Door, (uid: string, socket: Socket) => void>;

/** Connections that have proven nothing yet; of more, new ones are closed. */
const UNPROVEN_MAX = 1024;
const KEEP_ALIVE_MS = 30_000;

export interface DoorsOptions {
  port: number;
  tokens: Tokens;
  lives: Pick<Lives, "isCurrent" | "watch">;
  onDoor: OnDoor;
}

export class Doors {
  readonly #options: DoorsOptions;
  readonly #open = new Set<Socket>();
  /** Connections of each workload. */
  readonly #counts = new Map<string, number>();
  #unproven = 0;
  readonly #server: Server;

  constructor(options: DoorsOptions) {
    this.#options = options;
    const listener = { allowHalfOpen: true, noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_MS };
    this.#server = createServer(listener, (socket) => {
      socket.on("error", () => socket.destroy()); // the workload hung up; the reader of the socket sees its end
      this.#open.add(socket);
      socket.once("close", () => this.#open.delete(socket));
      this.#answer(socket).catch(() => socket.destroy());
    });
  }

  async listen(): Promise<void> {
    this.#server.listen({ port: this.#options.port });
    await once(this.#server, "listening");
  }

  async close(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, "close");
    this.#server.close();
    for (const socket of this.#open) socket.destroy();
    await closed;
  }

  async #answer(socket: Socket): Promise<void> {
    if (this.#unproven >= UNPROVEN_MAX) return void socket.destroy();
    const { tokens, lives, onDoor } = this.#options;
    this.#unproven += 1;
    const tokenOf = (purpose: string): string | null => {
      const caller = doorIn(purpose);
      return caller && tokens.doorOf(caller.door, caller);
    };
    const entered = await openGate(socket, tokenOf).finally(() => {
      this.#unproven -= 1;
    });
    const caller = entered && doorIn(entered.purpose);
    if (!entered || !caller || socket.destroyed) return void socket.destroy();
    // Tokens are derived and not stored, so that of an earlier life is still proven.
    if (!(await lives.isCurrent(caller)) || socket.destroyed) return void socket.destroy();
    const { door, uid } = caller;
    if (!this.#count(uid, socket)) return entered.refuse("too many connections");
    socket.once(
      "close",
      lives.watch(caller, () => socket.destroy()),
    );
    entered.accept();
    if (entered.rest.length > 0) socket.unshift(entered.rest);
    onDoor[door](uid, socket);
  }

  #count(uid: string, socket: Socket): boolean {
    const now = this.#counts.get(uid) ?? 0;
    if (now >= DOOR_CONNECTIONS_MAX) return false;
    this.#counts.set(uid, now + 1);
    socket.once("close", () => {
      const left = (this.#counts.get(uid) ?? 1) - 1;
      if (left > 0) this.#counts.set(uid, left);
      else this.#counts.delete(uid);
    });
    return true;
  }
}
