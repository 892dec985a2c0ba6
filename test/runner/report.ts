/** What the runner prints: each file as it ends, and at the very end the sums and every failure once more. */
import { type Counts, type Failure, noCounts, type Outcome } from "./outcome.ts";

const OUTPUT_LINES_MAX = 200;
const FAILURE_LINES_MAX = 60;

export function fileReport({ file, durationMs, counts, failures, lines, output, leftBehind }: Outcome): string {
  const mark = failures.length > 0 ? "✖" : "✔";
  const failed = failures.map((failure) => failureReport(failure));
  return [
    `${mark} ${file} (${counts.tests} tests, ${(durationMs / 1000).toFixed(1)} s)`,
    ...lines,
    ...(output.trim() === "" ? [] : ["  it wrote:", ...indented(output, OUTPUT_LINES_MAX)]),
    ...leftBehind.map((thing) => `  ⚠ left behind: ${thing}`),
    ...failed,
  ].join("\n");
}

export function finalReport(outcomes: readonly Outcome[], durationMs: number): string {
  const counts = outcomes.reduce((sum, { counts }) => add(sum, counts), noCounts());
  const failures = outcomes.flatMap((outcome) => outcome.failures);
  const leaks = outcomes.filter(({ leftBehind }) => leftBehind.length > 0);
  return [
    ...(leaks.length === 0 ? [] : ["", "left behind:"]),
    ...leaks.flatMap(({ file, leftBehind }) => leftBehind.map((thing) => `  ⚠ ${file}: ${thing}`)),
    ...(failures.length === 0 ? [] : ["", "failing tests:"]),
    ...failures.map((failure) => failureReport(failure)),
    "",
    ...Object.entries(counts).map(([name, count]) => `# ${name} ${count}`),
    `# duration_ms ${Math.round(durationMs)}`,
    ...(failures.length === 0
      ? []
      : ["", "failed:", ...failures.map((failure) => `  ✖ ${nameOf(failure)}: ${firstLine(failure.text)}`)]),
  ].join("\n");
}

/** Slowest first, for whoever wants the suite shorter. On a busy machine compare the CPU time, not the time passed. */
export function timesReport(outcomes: readonly Outcome[]): string {
  const row = (durationMs: number, cpuSeconds: number, name: string): string =>
    `${(durationMs / 1000).toFixed(1).padStart(7)} s ${cpuSeconds.toFixed(1).padStart(7)} s CPU  ${name}`;
  const sum = (of: (outcome: Outcome) => number): number => outcomes.reduce((total, outcome) => total + of(outcome), 0);
  return [
    ...outcomes
      .toSorted((a, b) => b.durationMs - a.durationMs)
      .map(({ file, durationMs, cpuSeconds }) => row(durationMs, cpuSeconds, file)),
    row(
      sum((outcome) => outcome.durationMs),
      sum((outcome) => outcome.cpuSeconds),
      `${outcomes.length} files together`,
    ),
  ].join("\n");
}

const nameOf = ({ file, path }: Failure): string => [file, ...path].join(" › ");

const firstLine = (text: string): string => text.trim().split("\n", 1)[0]?.slice(0, 200) ?? "";

const failureReport = (failure: Failure): string =>
  [`✖ ${nameOf(failure)}`, ...indented(failure.text, FAILURE_LINES_MAX)].join("\n");

/** The start and the end of a text that is too long; what went wrong stands in one of both. */
function indented(text: string, max: number): string[] {
  const lines = text.trimEnd().split("\n");
  const half = Math.floor(max / 2);
  const kept =
    lines.length <= max
      ? lines
      : [...lines.slice(0, half), `… ${lines.length - 2 * half} lines …`, ...lines.slice(-half)];
  return kept.map((line) => `    ${line}`);
}

const add = (a: Counts, b: Counts): Counts => ({
  tests: a.tests + b.tests,
  suites: a.suites + b.suites,
  pass: a.pass + b.pass,
  fail: a.fail + b.fail,
  cancelled: a.cancelled + b.cancelled,
  skipped: a.skipped + b.skipped,
  todo: a.todo + b.todo,
});
