/** Which test files run in one process, and the order in which the processes are begun. */
import { readFileSync } from "node:fs";
import { longestFirst, TAKES_LONG } from "./order.ts";

/**
 * Folders whose files share processes, and how many at most: what loads the platform costs more than what does not.
 * The other folders ask for much of the machine, or their files are few.
 */
const SHARED: readonly { folder: string; filesMax: number }[] = [
  { folder: "src/", filesMax: 30 },
  ...["attacks", "console", "e2e", "facades", "gateway", "identity", "models", "rotation", "s3", "triggers"].map(
    (name) => ({ folder: `test/${name}/`, filesMax: 8 }),
  ),
];

/**
 * A file that changes what belongs to the whole process has one of its own. A clock does: ids carry the time of the
 * latest clock that the process has seen, and only grow.
 */
const CHANGES_PROCESS =
  /\bclock\b|now: \(\)|process\.(env(\.\w+|\[[^\]]+\]) = |chdir|umask|set\w*id|exitCode|exit\()|delete process\.env|mock\.(timers|method|module)|setGlobalDispatcher|globalThis\.\w+ =/;

/** One list of files per process. The longest come first, then what is shared, then the small rest. */
export function processesFor(files: readonly string[]): string[][] {
  const ordered = longestFirst(files);
  const long = ordered.filter((file) => TAKES_LONG.has(file));
  const shared = SHARED.flatMap(({ folder, filesMax }) =>
    parts(
      ordered.filter((file) => file.startsWith(folder) && !TAKES_LONG.has(file) && mayShare(file)),
      filesMax,
    ),
  );
  const placed = new Set([...long, ...shared.flat()]);
  const rest = ordered.filter((file) => !placed.has(file));
  return [...alone(long), ...shared, ...alone(rest)];
}

/** A process for each file. */
export const alone = (files: readonly string[]): string[][] => longestFirst(files).map((file) => [file]);

function mayShare(file: string): boolean {
  return file.endsWith(".test.ts") && !CHANGES_PROCESS.test(readFileSync(file, "utf8"));
}

/** As few parts as there can be, of about the same size. */
function parts(files: readonly string[], max: number): string[][] {
  const size = Math.ceil(files.length / Math.ceil(files.length / max));
  return Array.from({ length: Math.ceil(files.length / size) || 0 }, (_, index) =>
    files.slice(index * size, (index + 1) * size),
  );
}
