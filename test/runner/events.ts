/**
 * What a test file tells the runner: one line of JSON per event, written by the process of the file itself (it is
 * loaded there as a reporter of Node's test runner) and read by `file-run.ts`, also when the file was ended half way.
 */
import { appendFileSync, readFileSync } from "node:fs";
import { inspect } from "node:util";

export type FileEvent =
  | { type: "enqueued" | "completed" | "started"; id: number; nesting: number; name: string }
  | {
      type: "passed" | "failed";
      nesting: number;
      name: string;
      suite: boolean;
      durationMs: number;
      /** The reason, or an empty text where none was given. */
      skip?: string;
      todo?: string;
      /** Node's word for the way it failed, and the error as a reader wants it. */
      failure?: { type: string; text: string };
    }
  | { type: "note"; text: string }
  | { type: "cpu"; seconds: number };

/** Node ends every file with these; the runner adds its own for all files together. */
const SUMMARY = /^(tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) [\d.]+$/;

/** The unit of times in /proc (USER_HZ), the same on every machine that Node runs on. */
const TICKS_PER_SECOND = 100;

interface Told {
  name: string;
  nesting: number;
  testId?: number;
  message: string;
  skip?: string | boolean;
  todo?: string | boolean;
  details: { duration_ms: number; type?: string; error?: Error & { failureType?: string; cause?: unknown } };
}

export default async function* events(source: AsyncIterable<{ type: string; data: Told }>): AsyncGenerator<string> {
  process.once("exit", tellCpu);
  for await (const { type, data } of source) {
    const event = eventOf(type, data);
    if (event) yield `${JSON.stringify(event)}\n`;
    // The end of a file, where several share the process.
    if (event?.type === "completed" && event.nesting === 0) yield cpuLine();
  }
}

function eventOf(type: string, data: Told): FileEvent | null {
  const id = data?.testId ?? 0;
  if (type === "test:enqueue") return { type: "enqueued", id, nesting: data.nesting, name: data.name };
  if (type === "test:complete") return { type: "completed", id, nesting: data.nesting, name: data.name };
  if (type === "test:start") return { type: "started", id, nesting: data.nesting, name: data.name };
  if (type === "test:diagnostic") return SUMMARY.test(data.message) ? null : { type: "note", text: data.message };
  if (type !== "test:pass" && type !== "test:fail") return null;
  const { error } = data.details;
  return {
    type: type === "test:pass" ? "passed" : "failed",
    nesting: data.nesting,
    name: data.name,
    suite: data.details.type === "suite",
    durationMs: data.details.duration_ms,
    ...(data.skip === undefined || data.skip === false ? {} : { skip: reason(data.skip) }),
    ...(data.todo === undefined || data.todo === false ? {} : { todo: reason(data.todo) }),
    ...(error ? { failure: { type: error.failureType ?? "", text: textOf(error.cause ?? error) } } : {}),
  };
}

const reason = (given: string | boolean): string => (typeof given === "string" ? given : "");

const textOf = (error: unknown): string => (typeof error === "string" ? error : inspect(error, { depth: 6 }));

function tellCpu(): void {
  const flag = "--test-reporter-destination=";
  const path = process.execArgv.find((argument) => argument.startsWith(flag))?.slice(flag.length);
  if (path) appendFileSync(path, cpuLine());
}

/** The CPU time so far of this process and of its children that have ended. Linux alone counts the children. */
function cpuLine(): string {
  if (process.platform !== "linux") return "";
  const fields = readFileSync("/proc/self/stat", "utf8").split(") ")[1]?.split(" ") ?? [];
  const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
  return `${JSON.stringify({ type: "cpu", seconds: ticks / TICKS_PER_SECOND } satisfies FileEvent)}\n`;
}

/** The events of a file so far; a line that was cut off by the end of its process is left out. */
export function readEvents(text: string): FileEvent[] {
  return text.split("\n").flatMap((line) => {
    try {
      return [JSON.parse(line) as FileEvent];
    } catch {
      return [];
    }
  });
}
