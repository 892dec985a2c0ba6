/** Ctrl-C while the command line only watches: what it watches goes on, and whoever pressed it is told so. */
import type { Context } from "../command.ts";

/** As shells report a program that ended by SIGINT. */
const INTERRUPTED = 130;

export async function tellWhenInterrupted<T>(
  lines: readonly string[],
  { note }: Pick<Context, "note">,
  work: () => Promise<T>,
): Promise<T> {
  const leave = (): void => {
    note(""); // ends the line that shows how far it is, and the ^C of the terminal
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
