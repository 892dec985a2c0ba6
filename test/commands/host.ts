/**
 * A process that runs commands of `berth` one after the other (`child.ts`). A process per command spends 0.4 s of CPU on
 * loading the command line, and the suite runs some seven hundred commands.
 */
import { type ChildProcess, fork } from "node:child_process";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { closeAtEnd } from "../closing.ts";

export interface Order {
  args: readonly string[];
  env: Record<string, string>;
  cwd: string;
  input: string;
}

export interface Said {
  code: number;
  stdout: string;
  stderr: string;
}

export interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

/** One per folder of the project. */
const hosts = new Map<string, Host>();

/** Null while a command of the same host runs: the caller starts a process then. */
export function runInHost(root: string, order: Order): Promise<Ended> | null {
  const host = hosts.get(root) ?? startHost(root);
  return host.isBusy ? null : host.run(order);
}

function startHost(root: string): Host {
  const host = new Host(root, () => hosts.delete(root));
  hosts.set(root, host);
  return host;
}

class Host {
  isBusy = false;
  readonly #child: ChildProcess;
  readonly #ended: Promise<Ended>;

  constructor(root: string, onEnd: () => void) {
    this.#child = fork(join(import.meta.dirname, "child.ts"), [root], {
      stdio: ["ignore", "pipe", "pipe", "ipc"],
      execArgv: [],
      env: { PATH: process.env.PATH },
    });
    const { stdout, stderr } = this.#child;
    const printed = Promise.all([stdout, stderr].map((stream) => (stream ? text(stream) : "")));
    const exited = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve, reject) => {
      this.#child.once("error", reject);
      this.#child.once("exit", (code, signal) => {
        onEnd();
        resolve({ code, signal });
      });
    });
    this.#ended = exited.then(async (end) => {
      const [out = "", error = ""] = await printed;
      return { ...end, stdout: out, stderr: error };
    });
    closeAtEnd(() => {
      if (this.#child.connected) this.#child.disconnect();
      return exited;
    });
  }

  /** A command that ends the process, as after an interrupt, ends the host with it. */
  async run(order: Order): Promise<Ended> {
    this.isBusy = true;
    this.#hold("ref");
    const said = new Promise<Ended>((resolve) => {
      this.#child.once("message", (message) => resolve({ ...(message as Said), signal: null }));
    });
    this.#child.send(order);
    try {
      return await Promise.race([said, this.#ended]);
    } finally {
      this.isBusy = false;
      this.#hold("unref");
    }
  }

  /** Between two commands the host keeps nobody from ending. */
  #hold(change: "ref" | "unref"): void {
    this.#child[change]();
    this.#child.channel?.[change]();
    for (const stream of [this.#child.stdout, this.#child.stderr])
      (stream as { ref?(): void; unref?(): void } | null)?.[change]?.();
  }
}
