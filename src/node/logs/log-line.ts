/**
 * The format of one stored line: sixteen digits of microseconds, two of severity, a letter for the source, then JSON. A
 * reader can skip most lines without parsing them.
 */
import type { LogSource, LogTag } from "../../contract/log-line.ts";

export interface LogLine {
  message: string;
  severity: number;
  traceId?: string;
  /** Members of a structured line other than its message. */
  attributes?: Record<string, unknown>;
  /** Position in a workload's output where the line ended, from which a restarted follower continues. */
  origin?: Origin;
}

export interface Origin {
  workload: string;
  stream: "stdout" | "stderr";
  /** Position of the first byte after the line. */
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

/** One-letter names, since every line repeats them. */
interface Packed {
  m: string;
  u: string;
  r?: string;
  e?: string;
  k?: string;
  t?: string;
  a?: Record<string, unknown>;
  /** Workload, stream, end position. */
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

/** The text of a member inside a stored line; a line without this text does not have that member. */
export const markOf = (member: "u" | "r" | "e" | "k" | "t", value: string): string =>
  `"${member}":${JSON.stringify(value)}`;

/** Null when the line was torn or has another format. */
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
