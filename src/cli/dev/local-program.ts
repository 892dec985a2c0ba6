/**
 * The program of a code folder as a process of this machine, in a process group of its own, so that a restart also ends
 * what the program has started.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { connect } from "node:net";
import { setTimeout as pause } from "node:timers/promises";

export interface LocalProgram {
  /** Resolves with "ready" when the program accepts connections, or with the sentence that says how it ended. */
  ready: Promise<"ready" | string>;
  /** Resolves with the sentence that says how the program ended. */
  ended: Promise<string>;
  stop(): Promise<void>;
}

export interface LocalStart {
  /** A shell line. */
  line: string;
  folder: string;
  env: Record<string, string>;
  port: number;
}

/** Time between SIGTERM and SIGKILL; the platform gives a replaced copy longer, but a developer waits for this one. */
const GRACE_MS = 3000;
/** Pause between two looks at the port. */
const LOOK_MS = 50;

export function startLocally({ line, folder, env, port }: LocalStart): LocalProgram {
  const child = spawn("/bin/sh", ["-c", line], { cwd: folder, env, detached: true, stdio: ["ignore", 2, 2] });
  const kill = (signal: NodeJS.Signals): void => signalGroup(child, signal);
  // A program must not outlive the command that started it.
  const killAtExit = (): void => kill("SIGKILL");
  process.once("exit", killAtExit);
  const ended = new Promise<string>((resolve) => {
    child.once("error", (error) => resolve(`did not start: ${error.message}`));
    child.once("exit", (code, signal) => resolve(signal ? `ended by ${signal}` : `ended with code ${code}`));
  });
  void ended.then(() => {
    process.off("exit", killAtExit);
    kill("SIGKILL"); // what it has started and left behind
  });
  let isOver = false;
  void ended.then(() => (isOver = true));
  return {
    ended,
    ready: Promise.race([ended, accepts(port, () => isOver).then(() => "ready" as const)]),
    async stop() {
      kill("SIGTERM");
      const late = new AbortController();
      const killLater = pause(GRACE_MS, undefined, { signal: late.signal }).then(
        () => kill("SIGKILL"),
        () => {}, // the program ended in time
      );
      await ended;
      late.abort();
      await killLater;
    },
  };
}

function signalGroup({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // The group has ended.
  }
}

async function accepts(port: number, isOver: () => boolean): Promise<void> {
  while (!isOver() && !(await isAccepted(port))) await pause(LOOK_MS);
}

export const isAccepted = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect({ port, host: "127.0.0.1" }, () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
