/**
 * One line as it is kept. On disk: sixteen digits of microseconds, two of severity, a letter for the source, then JSON;
 * so that most lines are passed over by a reader without being parsed.
 */
import type { LogSource, LogTag } from "../../contract/log-line.ts";

export interface LogLine {
  message: string;
  severity: number;
  traceId?: string;
  /** What a structured line says beside its message. */
  attributes?: Record<string, unknown>;
  /** Where in the output of which workload it ended: a follower that starts anew goes on there. */
  origin?: Origin;
}

export interface Origin {
  workload: string;
  stream: "stdout" | "stderr";
  /** Position of the first byte behind the line. */
  end: number;
}

export interface StoredLine extends LogLine {
  timeUs: number;
  source: LogSource;
  uid: string;
  revision?: string;
  executionId?: string;
  taskId?: string;
}

/** Short names: they stand in every line. */
interface Packed {
  m: string;
  u: string;
  r?: string;
  e?: string;
  k?: string;
  t?: string;
  a?: Record<string, unknown>;
  /** Workload, stream, end. */
  o?: [string, "o" | "e", number];
}

const TIME_DIGITS = 16;
const PREFIX = TIME_DIGITS + 6;

export function encodeLine(timeUs: number, tag: LogTag, line: LogLine): string {
  const { traceId, attributes, origin } = line;
  const packed: Packed = {
    m: line.message,
    u: tag.uid,
    ...(tag.revision === undefined ? {} : { r: tag.revision }),
    ...(tag.executionId === undefined ? {} : { e: tag.executionId }),
    ...(tag.taskId === undefined ? {} : { k: tag.taskId }),
    ...(traceId === undefined ? {} : { t: traceId }),
    ...(attributes === undefined ? {} : { a: attributes }),
    ...(origin === undefined ? {} : { o: [origin.workload, origin.stream === "stdout" ? "o" : "e", origin.end] }),
  };
  const severity = String(line.severity).padStart(2, "0");
  const source = tag.source === "build" ? "b" : "r";
  return `${String(timeUs).padStart(TIME_DIGITS, "0")} ${severity} ${source} ${JSON.stringify(packed)}\n`;
}

export const timeOf = (text: string): number => Number(text.slice(0, TIME_DIGITS));
export const severityOf = (text: string): number => Number(text.slice(TIME_DIGITS + 1, TIME_DIGITS + 3));
export const sourceOf = (text: string): LogSource => (text.charAt(TIME_DIGITS + 4) === "b" ? "build" : "run");

/** A member as it stands in the line: what does not contain this does not have that member. */
export const markOf = (member: "u" | "r" | "e" | "k" | "t", value: string): string =>
  `"${member}":${JSON.stringify(value)}`;

/** null: the line was torn, or is none of ours. */
export function decodeLine(text: string): StoredLine | null {
  try {
    const { m, u, r, e, k, t, a, o } = JSON.parse(text.slice(PREFIX)) as Packed;
    return {
      timeUs: timeOf(text),
      severity: severityOf(text),
      source: sourceOf(text),
      message: m,
      uid: u,
      ...(r === undefined ? {} : { revision: r }),
      ...(e === undefined ? {} : { executionId: e }),
      ...(k === undefined ? {} : { taskId: k }),
      ...(t === undefined ? {} : { traceId: t }),
      ...(a === undefined ? {} : { attributes: a }),
      ...(o === undefined ? {} : { origin: { workload: o[0], stream: o[1] === "o" ? "stdout" : "stderr", end: o[2] } }),
    };
  } catch {
    return null;
  }
}
