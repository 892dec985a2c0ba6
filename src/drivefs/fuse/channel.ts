/**
 * The connection of a mount to the server that has its files, through the server of this machine. A connection that
 * breaks is made anew; questions wait for it, but no longer than WAIT_MS, so that no program hangs on a lost machine.
 */
import { connect, type Socket } from "node:net";
import { constants } from "node:os";
import { ConnectionBroke, FileError } from "../errors.ts";
import { FrameReader, frameOf } from "../frames.ts";
import type { Answer, AnswerHead, AskName, Asks, Greeting, MountAsk } from "../wire.ts";

export interface ChannelTimes {
  /** How long a question waits for a connection. */
  waitMs: number;
  /** Without an answer for this long the connection is given up. */
  silenceMs: number;
  /** Pause between two tries to connect. */
  pauseMs: number;
}

const TIMES = { silenceMs: 30_000, pauseMs: 250 };
/** Questions that are under way at once. */
const AT_ONCE = 64;

/** What may be asked again when the connection broke before the answer came: the second time changes nothing. */
const REPEATABLE: ReadonlySet<AskName> = new Set<AskName>([
  ...(["root", "lookup", "stat", "readLink", "space", "open", "openFolder"] as const),
]);

interface Pending {
  ask: AskName;
  args: () => Asks[AskName];
  body: Buffer | undefined;
  until: number;
  resolve(answer: Answer): void;
  reject(error: Error): void;
}

export class Channel {
  readonly #path: string;
  readonly #mount: MountAsk;
  readonly #times: ChannelTimes;
  readonly #waiting: Pending[] = [];
  readonly #sent = new Map<number, Pending>();
  #socket: Socket | null = null;
  #isReady = false;
  #isClosed = false;
  /** When the connection was lost; 0 while there is one. */
  #lostAt = performance.now();
  #heardAt = 0;
  #last = 0;
  /** Counts connections: handles of an earlier one mean nothing to the server. */
  epoch = 0;
  readonly #watch: NodeJS.Timeout;

  constructor(path: string, mount: MountAsk, times: Pick<ChannelTimes, "waitMs"> & Partial<ChannelTimes>) {
    this.#path = path;
    this.#mount = mount;
    this.#times = { ...TIMES, ...times };
    this.#watch = setInterval(() => this.#look(), Math.min(250, this.#times.pauseMs));
    this.#connect();
  }

  /** `args` are made anew when the question is sent again: a file may have another place by then. */
  ask(ask: AskName, args: () => Asks[AskName], body?: Buffer): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const isLost = this.#lostAt > 0 && performance.now() - this.#lostAt > this.#times.waitMs;
    if (isLost || this.#isClosed) return Promise.reject(new FileError("EIO", "the drive's server is away"));
    const until = performance.now() + this.#times.waitMs;
    this.#waiting.push({ ask, args, body, until, resolve, reject });
    this.#flush();
    return promise;
  }

  /** Resolves when there is a connection; it may be another one than before. */
  async ready(): Promise<void> {
    if (!this.#isReady) await this.ask("space", () => ({}));
  }

  close(): void {
    this.#isClosed = true;
    clearInterval(this.#watch);
    this.#socket?.destroy();
    for (const each of [...this.#waiting.splice(0), ...this.#sent.values()]) each.reject(new FileError("EIO"));
  }

  #connect(): void {
    const reader = new FrameReader();
    const socket = connect({ path: this.#path });
    this.#socket = socket;
    socket.on("connect", () => {
      for (const part of frameOf(this.#mount)) socket.write(part);
    });
    socket.on("data", (chunk: Buffer) => {
      this.#heardAt = performance.now();
      try {
        reader.push(chunk);
        for (let frame = reader.next<AnswerHead & Greeting>(); frame; frame = reader.next<AnswerHead & Greeting>())
          this.#take(frame.head, frame.body);
      } catch (error) {
        socket.destroy(error as Error);
      }
    });
    socket.on("error", () => {});
    socket.on("close", () => this.#broke(socket));
    socket.on("end", () => socket.destroy());
  }

  #take(head: AnswerHead & Greeting, body: Buffer): void {
    if (!this.#isReady) {
      if (!head.ready) throw new Error(head.refusal ?? "the server refuses the mount");
      this.#isReady = true;
      this.#lostAt = 0;
      this.epoch += 1;
      this.#flush();
      return;
    }
    const { id, errno, ...answer } = head;
    const pending = this.#sent.get(id);
    this.#sent.delete(id);
    if (errno !== undefined) pending?.reject(new FileError(codeOf(errno)));
    else pending?.resolve({ ...answer, body });
    this.#flush();
  }

  #flush(): void {
    const socket = this.#socket;
    if (!socket || !this.#isReady) return;
    socket.cork();
    while (this.#sent.size < AT_ONCE) {
      const next = this.#waiting.shift();
      if (!next) break;
      try {
        this.#last += 1;
        const parts = frameOf({ id: this.#last, ask: next.ask, args: next.args() }, next.body);
        if (this.#sent.size === 0) this.#heardAt = performance.now();
        this.#sent.set(this.#last, next);
        for (const part of parts) socket.write(part);
      } catch (error) {
        next.reject(error as Error);
      }
    }
    process.nextTick(() => socket.uncork());
  }

  #broke(socket: Socket): void {
    if (this.#socket !== socket) return;
    this.#socket = null;
    this.#isReady = false;
    if (this.#lostAt === 0) this.#lostAt = performance.now();
    const sent = [...this.#sent.values()];
    this.#sent.clear();
    for (const each of sent) {
      if (REPEATABLE.has(each.ask)) this.#waiting.unshift(each);
      else each.reject(new ConnectionBroke());
    }
    if (!this.#isClosed) setTimeout(() => !this.#isClosed && this.#connect(), this.#times.pauseMs);
  }

  #look(): void {
    const now = performance.now();
    if (this.#sent.size > 0 && now - this.#heardAt > this.#times.silenceMs) this.#socket?.destroy();
    if (this.#isReady) return;
    for (let each = this.#waiting[0]; each && each.until < now; each = this.#waiting[0]) {
      this.#waiting.shift();
      each.reject(new FileError("EIO", "the drive's server is away"));
    }
  }
}

const CODES = new Map(Object.entries(constants.errno).map(([code, number]) => [number, code]));
const codeOf = (errno: number): keyof typeof constants.errno =>
  (CODES.get(errno) ?? "EIO") as keyof typeof constants.errno;
