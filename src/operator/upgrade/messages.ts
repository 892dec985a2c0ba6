/** Messages between the old server and the new one, which is its child. */
import type { ChildProcess } from "node:child_process";
import type { ProcessIdentity } from "../../lib/process-note.ts";

/** Descriptor of the listening socket in the new process; 3 is the channel of these messages. */
export const PORT_FD = 4;

export type FromNew =
  /** The code is loaded and the database was inspected; nothing is changed. */
  | { type: "loaded"; migrations: number }
  | { type: "failed"; reason: string }
  /** Listens and serves. */
  | { type: "ready" };

export type FromOld =
  /** The old server has stopped: the data folder is free. */
  | { type: "go"; attendant: ProcessIdentity; requireMachine: boolean }
  /** Carries a connection that waited. */
  | { type: "connection" }
  /** All connections were sent. */
  | { type: "bye" };

/** Sends to the old server, if there is one. */
export const tellOld = (message: FromNew): Promise<void> =>
  new Promise((resolve) => {
    if (process.send && process.connected) process.send(message, () => resolve());
    else resolve();
  });

/** The next message of one of these types. Rejects when the child exits before, with the reason if it sent one. */
export function nextFrom<T extends FromNew["type"]>(
  child: ChildProcess,
  type: T,
  limitMs: number,
): Promise<Extract<FromNew, { type: T }>> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => end(() => reject(new Error(`it was not ready within ${limitMs / 1000} s`))),
      limitMs,
    );
    const onMessage = (message: unknown): void => {
      const told = message as FromNew;
      if (told.type === type) end(() => resolve(told as Extract<FromNew, { type: T }>));
      else if (told.type === "failed") end(() => reject(new Error(told.reason)));
    };
    const onClose = (code: number | null, signal: NodeJS.Signals | null): void =>
      end(() => reject(new Error(`its process ended with ${signal ?? code}; its output is in the server's log`)));
    const onError = (error: Error): void => end(() => reject(error));
    const end = (then: () => void): void => {
      clearTimeout(timer);
      child.off("message", onMessage).off("exit", onClose).off("error", onError);
      then();
    };
    child.on("message", onMessage).on("exit", onClose).on("error", onError);
    if (child.exitCode !== null || child.signalCode !== null) onClose(child.exitCode, child.signalCode);
  });
}
