/** A program of the cluster that runs until told otherwise; its output is a file of the cluster's folder. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { PATH } from "../parts/folder.ts";

export interface ProgramOptions {
  /** Folder for the output. */
  dir: string;
  name: string;
  args: readonly string[];
  env?: Readonly<Record<string, string>>;
  /** Start it again whenever it ends by itself, as the init of a machine does. */
  revived?: boolean;
}

const REVIVE_MS = 500;

export class Program {
  readonly name: string;
  readonly #options: ProgramOptions;
  #child: ChildProcess;
  #stopped = false;

  constructor(options: ProgramOptions) {
    this.name = options.name;
    this.#options = options;
    this.#child = this.#spawn();
  }

  /** Throws with the end of the output once the program has ended by itself. */
  check(): void {
    if (this.#alive() || this.#options.revived) return;
    throw new Error(`${this.name} ended with ${this.#child.exitCode ?? this.#child.signalCode}:\n${this.output()}`);
  }

  output(): string {
    return readFileSync(join(this.#options.dir, `${this.name}.log`), "utf8").slice(-4000);
  }

  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
    this.#stopped = true;
    if (!this.#alive()) return;
    const ended = once(this.#child, "exit");
    this.#child.kill(signal);
    await ended;
  }

  start(): void {
    this.#stopped = false;
    this.#child = this.#spawn();
  }

  /** Ends the program without warning and starts it again. */
  async restart(): Promise<void> {
    await this.stop("SIGKILL");
    this.start();
  }

  #spawn(): ChildProcess {
    const child = launch(this.#options);
    const revive = (): void => {
      if (!this.#stopped && this.#child === child) this.#child = this.#spawn();
    };
    if (this.#options.revived) child.once("exit", () => setTimeout(revive, REVIVE_MS).unref());
    return child;
  }

  #alive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }
}

function launch({ dir, name, args, env }: ProgramOptions): ChildProcess {
  const log = openSync(join(dir, `${name}.log`), "a");
  const child = spawn(name, args, {
    ...{ cwd: dir, stdio: ["ignore", log, log] },
    env: { PATH, HOME: dir, LANG: "C.UTF-8", ...env },
  });
  closeSync(log);
  child.once("error", () => {}); // told by check()
  return child;
}
