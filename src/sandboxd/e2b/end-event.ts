import type { Message } from "./connect.ts";

/** The end of a process, in the words of E2B's daemon. A death by signal has the exit code -1. */
export function endEvent(exitCode: number, signal: "terminated" | "killed"): Message {
  const isExit = exitCode >= 0;
  const word = isExit ? `exit status ${exitCode}` : `signal: ${signal}`;
  return { exitCode, exited: isExit, status: word, ...(exitCode === 0 ? {} : { error: word }) };
}
