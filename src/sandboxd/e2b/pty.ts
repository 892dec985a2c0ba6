/** Terminals of E2B: a program on a pseudo terminal, which lives until it ends, also while no client listens. */
import type { Child } from "../bun.ts";
import type { Daemon } from "../daemon-context.ts";
import { ApiError } from "../http/api-error.ts";
import { spawnExpendable } from "../process/expendable.ts";
import { COLS_DEFAULT, ROWS_DEFAULT, side } from "../terminal/session.ts";
import { type Message, messageOf, type Rpc, RpcError, type Send, TIMER_MS_MAX } from "./connect.ts";
import { endEvent } from "./end-event.ts";
import type { ProcessPlan } from "./process-plan.ts";

const PTYS_MAX = 64;
/** Output kept for a client that reads slowly, or that has not come yet; the oldest is dropped. */
const WAITING_BYTES_MAX = 4 * 1024 * 1024;

const ptys = new Map<number, Pty>();

export const ptyOf = (pid: number): Pty | undefined => ptys.get(pid);
export const allPtys = (): Iterable<Pty> => ptys.values();

export class Pty {
  readonly plan: ProcessPlan;
  readonly #child: Child;
  readonly #readers = new Set<Reader>();
  /** Output from before the first reader. */
  #early: Reader | null = new Reader();
  #end: Message | null = null;

  constructor(daemon: Daemon, plan: ProcessPlan, size: Message, lifetimeMs: number | null) {
    if (/^(1|true|yes|on)$/i.test(daemon.environment.variable("DISABLE_TERMINAL") ?? ""))
      throw new ApiError(403, "The terminal is switched off in this sandbox.");
    if (ptys.size >= PTYS_MAX) throw new RpcError("resource_exhausted", `${PTYS_MAX} terminals are open already.`);
    this.plan = plan;
    // A terminal of 24 days or more lives until it is killed.
    const timer =
      lifetimeMs === null || lifetimeMs > TIMER_MS_MAX ? null : setTimeout(() => this.kill("SIGKILL"), lifetimeMs);
    this.#child = spawnExpendable(daemon.environment, plan.argv, {
      cwd: plan.workingDir,
      env: daemon.environment.variables(plan.env),
      detached: true,
      ...(plan.user ? { uid: plan.user.uid, gid: plan.user.gid } : {}),
      terminal: { ...sidesOf(size), data: (_, chunk) => this.#output(Buffer.from(chunk)) },
      onExit: (ended, exitCode) => {
        if (timer) clearTimeout(timer);
        daemon.counters.terminalClients -= 1;
        this.#ended(ended.signalCode ? -1 : (exitCode ?? -1));
      },
    });
    // An open terminal keeps the sandbox awake.
    daemon.counters.terminalClients += 1;
    ptys.set(this.pid, this);
  }

  get pid(): number {
    return this.#child.pid;
  }

  input(bytes: Uint8Array): void {
    this.#child.terminal?.write(bytes);
  }

  resize(size: Message): void {
    const { cols, rows } = sidesOf(size);
    this.#child.terminal?.resize(cols, rows);
  }

  kill(signal: "SIGTERM" | "SIGKILL"): void {
    try {
      process.kill(-this.pid, signal);
    } catch {
      // The program is gone; its exit event is on the way.
    }
  }

  /** Tells the output from now on, and for the first client that from before, until the program has ended. */
  async tell({ call, keepaliveMs }: Rpc, send: Send): Promise<void> {
    const reader = this.#early ?? new Reader();
    this.#early = null;
    this.#readers.add(reader);
    try {
      let open = await send({ event: { start: { pid: this.pid } } });
      while (open && !call.signal.aborted) {
        const output = reader.take();
        if (output !== null) open = await send({ event: { data: { pty: output.toString("base64") } } });
        else if (this.#end) return void (await send({ event: { end: this.#end } }));
        else if (!(await reader.next(keepaliveMs, call.signal))) open = await send({ event: { keepalive: {} } });
      }
    } finally {
      this.#readers.delete(reader);
    }
  }

  #output(chunk: Buffer): void {
    this.#early?.push(chunk);
    for (const reader of this.#readers) reader.push(chunk);
  }

  #ended(exitCode: number): void {
    ptys.delete(this.pid);
    this.#end = endEvent(exitCode, "killed");
    this.#child.terminal?.close();
    for (const reader of this.#readers) reader.wake();
  }
}

class Reader {
  #waiting: Buffer[] = [];
  #bytes = 0;
  wake = (): void => {};

  push(chunk: Buffer): void {
    this.#waiting.push(chunk);
    this.#bytes += chunk.byteLength;
    while (this.#bytes > WAITING_BYTES_MAX) this.#bytes -= this.#waiting.shift()?.byteLength ?? this.#bytes;
    this.wake();
  }

  take(): Buffer | null {
    if (this.#waiting.length === 0) return null;
    this.#bytes = 0;
    return Buffer.concat(this.#waiting.splice(0));
  }

  /** True when there may be something to take; false when the time is up. */
  async next(waitMs: number, signal: AbortSignal): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const timer = setTimeout(() => resolve(false), waitMs);
    const left = (): void => resolve(true);
    this.wake = left;
    signal.addEventListener("abort", left, { once: true });
    const woken = await promise;
    clearTimeout(timer);
    signal.removeEventListener("abort", left);
    return woken;
  }
}

function sidesOf(pty: Message): { cols: number; rows: number } {
  const { cols, rows } = messageOf(pty, "size");
  return { cols: side(Number(cols), COLS_DEFAULT), rows: side(Number(rows), ROWS_DEFAULT) };
}
