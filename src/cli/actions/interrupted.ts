/** Ctrl-C while the command line only watches: the watched work continues on the server, and the user is told so. */
import type { Context } from "../command.ts";

/** Exit code of shells for a program that ended by SIGINT. */
const INTERRUPTED = 130;

export async function tellWhenInterrupted<T>(
  lines: readonly string[],
  { note }: Pick<Context, "note">,
  work: () => Promise<T>,
): Promise<T> {
  const leave = (): void => {
    note(""); // ends the progress line and the terminal's ^C
    for (const line of lines) note(line);
    process.exit(INTERRUPTED);
  };
  process.once("SIGINT", leave);
  try {
    return await work();
  } finally {
    process.off("SIGINT", leave);
  }
}
