/** The outcome of one test file, made of its events and of the way its process ended. */
import type { FileEvent } from "./events.ts";

export interface Counts {
  tests: number;
  suites: number;
  pass: number;
  fail: number;
  cancelled: number;
  skipped: number;
  todo: number;
}

export interface Failure {
  file: string;
  /** From the outermost suite to the test; empty when the file itself failed. */
  path: string[];
  text: string;
}

export interface Outcome {
  file: string;
  durationMs: number;
  /** Of the file's process and of the children it waited for; not of databases and servers that files share. */
  cpuSeconds: number;
  counts: Counts;
  failures: Failure[];
  /** The file as a tree of tests, ready to be printed. */
  lines: string[];
  /** What the file wrote, beside its results. */
  output: string;
  /** What it left on the machine. */
  leftBehind: string[];
}

export interface Ending {
  file: string;
  durationMs: number;
  events: readonly FileEvent[];
  output: string;
  leftBehind: string[];
  code: number | null;
  signal: NodeJS.Signals | null;
  /** Why the runner ended it, when it did. */
  ended: string | null;
}

export const noCounts = (): Counts => ({ tests: 0, suites: 0, pass: 0, fail: 0, cancelled: 0, skipped: 0, todo: 0 });

/** Node's words for a test that was not heard to its end. */
const CANCELLED = new Set(["cancelledByParent", "testTimeoutFailure", "testAborted"]);

export function outcomeOf({ file, durationMs, events, output, leftBehind, code, signal, ended }: Ending): Outcome {
  const counts = noCounts();
  const failures: Failure[] = [];
  const lines: string[] = [];
  const names: string[] = [];
  let cpuSeconds = 0;
  for (const event of events) {
    if (event.type === "note") lines.push(`  ℹ ${event.text}`);
    if (event.type === "cpu") cpuSeconds = event.seconds;
    if (event.type === "started") names.splice(event.nesting, names.length, event.name);
    if (event.type !== "passed" && event.type !== "failed") continue;
    const bad = count(counts, event);
    lines.push(lineOf(event, bad));
    const path = [...names.slice(0, event.nesting), event.name];
    // A parent that fails because of its tests says nothing that they do not.
    if (bad && event.failure?.type !== "subtestsFailed")
      failures.push({ file, path, text: event.failure?.text ?? "failed" });
  }
  const whole = ended ?? wayOfEnding(code, signal, failures.length > 0);
  if (whole) {
    counts.tests += 1;
    counts.fail += 1;
    lines.push(`  ✖ ${whole}`);
    failures.push({ file, path: [], text: ended ? whole : `${whole}\n${output.trimEnd()}`.trimEnd() });
  }
  return { file, durationMs, cpuSeconds, counts, failures, lines, output, leftBehind };
}

/** Adds one event to the counts, by Node's own rules; whether it makes the file red. */
function count(counts: Counts, event: Extract<FileEvent, { type: "passed" | "failed" }>): boolean {
  const bad = event.type === "failed" && event.todo === undefined;
  if (event.suite) {
    counts.suites += 1;
    return bad;
  }
  counts.tests += 1;
  if (event.skip !== undefined) counts.skipped += 1;
  else if (event.todo !== undefined) counts.todo += 1;
  else if (event.type === "passed") counts.pass += 1;
  else if (CANCELLED.has(event.failure?.type ?? "")) counts.cancelled += 1;
  else counts.fail += 1;
  return bad;
}

function lineOf(event: Extract<FileEvent, { type: "passed" | "failed" }>, bad: boolean): string {
  const mark = bad ? "✖" : event.skip !== undefined ? "﹣" : "✔";
  const note = event.skip ?? event.todo;
  const why = note === undefined ? "" : ` # ${event.skip === undefined ? "TODO" : "SKIP"} ${note}`.trimEnd();
  return `${"  ".repeat(event.nesting + 1)}${mark} ${event.name} (${Math.round(event.durationMs)} ms)${why}`;
}

function wayOfEnding(code: number | null, signal: NodeJS.Signals | null, explained: boolean): string | null {
  if (signal) return `the file's process was ended by ${signal}`;
  if (code === 0 || explained) return null;
  return `the file's process ended with ${code}, outside of its tests`;
}
