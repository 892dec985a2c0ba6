/**
 * Programs that the daemon starts when a client first connects to their port. The variable `BERTH_SERVE_3000`, of the
 * image or of the sandbox, holds the shell line that serves port 3000, or the name of one of the daemon's own programs.
 * The program is a process like those that clients start: it is listed, has logs and can be stopped; the next
 * connection starts it again.
 */
import type { Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { selfArgv } from "../bun.ts";
import type { Environment } from "../process/environment.ts";
import type { ManagedProcess } from "../process/managed-process.ts";
import type { ProcessTable } from "../process/table.ts";
import { dial } from "./port-door.ts";
import { listenerInodes } from "./sockets.ts";

const VARIABLE = "BERTH_SERVE_";
/** Programs of the daemon itself that serve ports; each gets all of its ports as arguments. */
const OWN_PROGRAMS = ["code-interpreter"];
/** How long a program may take until it listens. */
const START_MAX_MS = 60_000;
const LOOK_MS = 10;
/**
 * How long the same listener has to be there. Development servers such as Vite first listen for a moment to see whether
 * the port is free; connections to that listener are reset.
 */
const STEADY_MS = 50;

export class OnDemand {
  readonly #environment: Environment;
  readonly #processes: ProcessTable;
  /** Ports whose program starts now; the promise ends with null when the program listens. */
  readonly #starts = new Map<number, Promise<Error | null>>();

  constructor(environment: Environment, processes: ProcessTable) {
    this.#environment = environment;
    this.#processes = processes;
  }

  /** Connects to the port, after starting its program when nothing listens there. */
  async dial(port: number): Promise<Socket | Error> {
    const line = this.#environment.variable(`${VARIABLE}${port}`);
    if (!line) return dial(port);
    if (!this.#starts.has(port)) {
      const first = await dial(port);
      if (!(first instanceof Error)) return first;
    }
    return (await this.#start(port, line)) ?? dial(port);
  }

  #start(port: number, line: string): Promise<Error | null> {
    const begun = this.#starts.get(port);
    if (begun) return begun;
    const process = this.#started(port, line);
    if (process instanceof Error) return Promise.resolve(process);
    const start = this.#awaited(port, process).finally(() => this.#starts.delete(port));
    this.#starts.set(port, start);
    return start;
  }

  #started(port: number, line: string): ManagedProcess | Error {
    const isOwn = OWN_PROGRAMS.includes(line);
    const name = isOwn ? line : `serve-${port}`;
    const running = this.#processes.list().findLast(({ record, running }) => record.name === name && running);
    if (running) return running;
    try {
      return this.#processes.start({
        command: isOwn ? [...selfArgv(), line, ...this.#portsOf(line)].map(quoted).join(" ") : line,
        name,
        workingDir: this.#environment.workDir,
        env: isOwn ? {} : { PORT: String(port) },
        restartOnFailure: false,
        maxRestarts: 0,
        keepAlive: false,
        lifetimeMs: null,
      });
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error));
    }
  }

  #portsOf(program: string): string[] {
    return Object.entries(this.#environment.variables()).flatMap(([name, value]) => {
      const port = name.startsWith(VARIABLE) ? name.slice(VARIABLE.length) : "";
      return value === program && /^\d{1,5}$/.test(port) ? [port] : [];
    });
  }

  async #awaited(port: number, process: ManagedProcess): Promise<Error | null> {
    const { name } = process.record;
    const isSteady = steadiness();
    for (const endMs = Date.now() + START_MAX_MS; Date.now() < endMs; await pause(LOOK_MS)) {
      if (isSteady(listenerInodes(port), Date.now())) return null;
      if (!process.running)
        return new Error(`process ${name} of ${VARIABLE}${port} ended with exit code ${process.record.exitCode}`);
    }
    return new Error(`process ${name} of ${VARIABLE}${port} does not listen on its port`);
  }
}

/** Judges one look after the other at the listeners of a port: whether the same ones are there since STEADY_MS. */
export function steadiness(): (inodes: readonly string[], nowMs: number) => boolean {
  let seen = "";
  let sinceMs = 0;
  return (inodes, nowMs) => {
    const listeners = inodes.join();
    if (listeners !== seen) [seen, sinceMs] = [listeners, nowMs];
    return listeners !== "" && nowMs - sinceMs >= STEADY_MS;
  };
}

const quoted = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`;
