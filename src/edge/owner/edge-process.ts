/** One edge process as its owner sees it, from its start to its end. */
import { type ChildProcess, spawn } from "node:child_process";
import type { Socket } from "node:net";
import { join } from "node:path";
import { type GatewayTotals, NOTHING_COUNTED, NOTHING_OPEN } from "../../gateway/totals.ts";
import { ROOT } from "../../lib/root.ts";
import type { EdgeStart, FromEdge, FromOwner, QuestionName, Served } from "../messages.ts";
import type { Answers } from "./answers.ts";
import { type Claim, Claims } from "./claims.ts";

const PROGRAM = join(ROOT, "bin/edge.js");
/** Time beyond the grace of its requests that a process has to end. */
const END_MS = 2000;

export interface EdgeProcessOptions {
  /** Descriptor of the port. */
  fd: number;
  start(): EdgeStart;
  answers: Answers;
  claim: Claim;
  /** Counts changes; an answer that was read before a change must not be kept after it. */
  era(): number;
  onServing(): void;
  onServed(request: Served): void;
  onLog(level: "debug" | "warn" | "error", fields: Record<string, unknown>, sentence: string): void;
  onConnection(socket: Socket): void;
}

export class EdgeProcess {
  readonly #options: EdgeProcessOptions;
  readonly #child: ChildProcess;
  readonly #claims: Claims;
  /** Workloads that the process may have kept. */
  readonly #heard = new Set<string>();
  /** Whether the process may have kept addresses that are not a workload's own. */
  #hasAddresses = false;
  readonly #pings = new Map<number, () => void>();
  #lastPing = 0;
  totals: GatewayTotals = NOTHING_COUNTED;
  isServing = false;
  /** Another process has its place; it serves the connections that it has. */
  isRetiring = false;
  /** When the process last showed that it lives. */
  seenMs = performance.now();
  readonly startedMs = performance.now();
  /** Resolves with the reason when the process is gone. */
  readonly ended: Promise<string>;

  constructor(options: EdgeProcessOptions) {
    this.#options = options;
    this.#claims = new Claims(options.claim);
    // An empty environment: the settings of the server may hold secrets that this process has no use for.
    this.#child = spawn(process.execPath, [PROGRAM], {
      env: {},
      stdio: ["ignore", "ignore", "inherit", "ipc", options.fd],
    });
    this.#child.on("message", (message: FromEdge, socket?: Socket) => this.#onMessage(message, socket));
    this.ended = new Promise((resolve) => {
      const end = (reason: string): void => {
        this.isServing = false;
        this.#claims.release();
        for (const settle of this.#pings.values()) settle();
        this.totals = { ...this.totals, open: NOTHING_OPEN };
        resolve(reason);
      };
      this.#child.once("error", (error) => end(error.message));
      this.#child.once("exit", (code, signal) => end(signal ?? `exit code ${code}`));
    });
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  send(message: FromOwner): void {
    if (this.#child.connected) this.#child.send(message, () => {}); // a process that ends is noticed by `ended`
  }

  /** Tells of a changed workload, if the process has heard of it. */
  changed(uid: string | null): void {
    if (uid === null) this.#heard.clear();
    else if (!this.#heard.delete(uid)) return;
    this.send({ type: "changed", uid });
  }

  /** Tells that addresses may lead elsewhere, if the process has asked for any since it was told last. */
  addressesChanged(): void {
    if (this.#hasAddresses) this.send({ type: "addresses" });
    this.#hasAddresses = false;
  }

  /** Resolves when the process has read everything sent before, or is gone. */
  settled(): Promise<void> {
    if (!this.isServing) return Promise.resolve();
    this.#lastPing += 1;
    const id = this.#lastPing;
    return new Promise((resolve) => {
      this.#pings.set(id, resolve);
      this.send({ type: "ping", id });
    });
  }

  /** Lets the process end with the last of its connections. */
  retire(): void {
    this.isRetiring = true;
    this.send({ type: "retire" });
  }

  /** Resolves when the process is gone. */
  async stop(graceMs: number, keepIdle: boolean): Promise<void> {
    this.send({ type: "stop", graceMs, keepIdle });
    const timer = setTimeout(() => this.kill(), graceMs + END_MS);
    await this.ended;
    clearTimeout(timer);
  }

  kill(): void {
    this.#child.kill("SIGKILL");
  }

  #onMessage(message: FromEdge, socket?: Socket): void {
    this.seenMs = performance.now();
    const { start, onServing, onServed, onLog, onConnection } = this.#options;
    if (message.type === "ask") void this.#answer(message.id, message.name, message.asked);
    else if (message.type === "open") for (const count of message.counts) this.#claims.count(count);
    else if (message.type === "served") {
      this.totals = message.totals;
      for (const request of message.requests) onServed(request);
    } else if (message.type === "pong") {
      this.totals = message.totals;
      this.#pings.get(message.id)?.();
      this.#pings.delete(message.id);
    } else if (message.type === "log") onLog(message.level, { ...message.fields, edge: this.pid }, message.sentence);
    else if (message.type === "loaded") this.send({ type: "start", start: start() });
    else if (message.type === "serving") {
      this.isServing = true;
      onServing();
    } else if (socket) onConnection(socket); // the message of a client that has disconnected comes without a socket
  }

  async #answer<N extends QuestionName>(id: number, name: N, asked: unknown): Promise<void> {
    const { answers, era } = this.#options;
    const readIn = era();
    const asker = {
      claims: this.#claims,
      hears: (uid: string) => void this.#heard.add(uid),
      hearsAddresses: () => {
        this.#hasAddresses = true;
      },
    };
    try {
      const value = await (answers[name] as (asked: unknown, by: typeof asker) => Promise<unknown>)(asked, asker);
      this.send({ type: "answer", id, value, fresh: readIn === era() });
    } catch (error) {
      this.send({ type: "failure", id, message: error instanceof Error ? error.message : String(error) });
    }
  }
}
