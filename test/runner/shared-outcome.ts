/** The outcomes of test files that shared a process (`together.ts`), where each file is a suite at the top. */
import type { FileEvent } from "./events.ts";
import { type Ending, type Outcome, outcomeOf } from "./outcome.ts";

export type SharedEnding = Omit<Ending, "file"> & { files: readonly string[] };

export function outcomesOf({ files, ...ending }: SharedEnding): Outcome[] {
  const [only, ...more] = files;
  if (only !== undefined && more.length === 0) return [outcomeOf({ file: only, ...ending })];
  const parts = files.map((file) => partOf(file, ending.events));
  const cut = parts.find(({ finished }) => !finished) ?? parts.at(-1);
  const explained = parts.some(({ events }) => events.some(({ type }) => type === "failed"));
  return parts.map((part) => {
    const { file, events, finished, durationMs } = part;
    const own = { file, events, durationMs, output: "", leftBehind: [], code: 0, signal: null, ended: null };
    if (part === cut)
      return outcomeOf({
        ...own,
        output: ending.output,
        leftBehind: ending.leftBehind.map((thing) => `${thing} (by one of ${files.join(", ")})`),
        ended: ending.ended,
        signal: ending.signal,
        // An end before the last test is one outside of the tests, whatever the process says.
        code: finished ? (explained ? 0 : ending.code) : ending.code || 1,
      });
    if (finished) return outcomeOf(own);
    return outcomeOf({ ...own, ended: `${file} was not run: the process that it shared ended in ${cut?.file}` });
  });
}

interface Part {
  file: string;
  events: FileEvent[];
  finished: boolean;
  durationMs: number;
}

/** The events of the file's suite as if the file had been alone. */
function partOf(file: string, all: readonly FileEvent[]): Part {
  const events: FileEvent[] = [];
  let [inside, durationMs, finished] = [false, 0, false];
  for (const event of all) {
    if (event.type === "note" || event.type === "cpu") continue;
    if (event.nesting > 0) {
      if (inside) events.push({ ...event, nesting: event.nesting - 1 });
      continue;
    }
    if (event.name !== file) continue;
    if (event.type === "started") inside = true;
    if (event.type !== "passed" && event.type !== "failed") continue;
    [inside, finished, durationMs] = [false, true, event.durationMs];
    // A file that could not be loaded, or a hook of it that failed.
    if (event.type === "failed" && event.failure?.type !== "subtestsFailed") events.push({ ...event, suite: false });
  }
  return { file, finished, durationMs, events: [...events, { type: "cpu", seconds: cpuOf(file, all) }] };
}

/** The CPU time that the process had used at the end of the file, without that of the files before. */
function cpuOf(file: string, all: readonly FileEvent[]): number {
  let before = 0;
  let ended = false;
  for (const event of all) {
    if (event.type === "completed" && event.nesting === 0 && event.name === file) ended = true;
    if (event.type !== "cpu") continue;
    if (ended) return event.seconds - before;
    before = event.seconds;
  }
  return 0;
}
