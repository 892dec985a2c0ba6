/** Turns a program's output into lines with a severity: read from structured lines, guessed for all others. */
import { type LogSource, SEVERITY, type SeverityName } from "../../contract/log-line.ts";
import type { LogLine } from "./log-line.ts";

/** A longer line is cut. */
export const LINE_CHARS_MAX = 16 * 1024;
/** Attributes of a structured line are dropped when they are longer. */
const ATTRIBUTES_CHARS_MAX = 8 * 1024;
/** The severity is searched only in the beginning of a line. */
const GUESS_CHARS = 120;

const MESSAGE_KEYS = ["message", "msg", "text"];
const SEVERITY_KEYS = ["severity", "level", "lvl", "severity_text", "severityText"];
const TRACE_KEYS = ["trace_id", "traceId", "trace"];

export function parseLine(text: string, stream: "stdout" | "stderr", source: LogSource): LogLine {
  const structured = text.startsWith("{") && text.length <= LINE_CHARS_MAX ? parseStructured(text, stream) : null;
  if (structured) return structured;
  return { message: cut(withoutColours(text)), severity: SEVERITY[guessed(text) ?? usual(stream, source)] };
}

function parseStructured(text: string, stream: "stdout" | "stderr"): LogLine | null {
  let fields: Record<string, unknown>;
  try {
    fields = JSON.parse(text) as Record<string, unknown>;
  } catch {
    return null;
  }
  const messageKey = MESSAGE_KEYS.find((key) => typeof fields[key] === "string");
  if (messageKey === undefined) return null;
  const severityKey = SEVERITY_KEYS.find((key) => fields[key] !== undefined);
  const traceKey = TRACE_KEYS.find((key) => typeof fields[key] === "string" && fields[key] !== "");
  const severity = severityKey === undefined ? null : severityFrom(fields[severityKey]);
  const message = withoutColours(String(fields[messageKey]));
  const known = new Set([messageKey, severityKey, traceKey]);
  const rest = Object.fromEntries(Object.entries(fields).filter(([key]) => !known.has(key)));
  const keepsRest = Object.keys(rest).length > 0 && text.length - message.length <= ATTRIBUTES_CHARS_MAX;
  return {
    message: cut(message),
    severity: severity ?? SEVERITY[guessed(message) ?? usual(stream, "run")],
    ...(traceKey === undefined ? {} : { traceId: cut(String(fields[traceKey]), 128) }),
    ...(keepsRest ? { attributes: rest } : {}),
  };
}

const WORDS: Record<string, SeverityName> = {
  trace: "TRACE",
  verbose: "TRACE",
  debug: "DEBUG",
  info: "INFO",
  notice: "INFO",
  log: "INFO",
  default: "INFO",
  warn: "WARNING",
  warning: "WARNING",
  error: "ERROR",
  err: "ERROR",
  fatal: "FATAL",
  critical: "FATAL",
  alert: "FATAL",
  emergency: "FATAL",
  panic: "FATAL",
};

/** Node loggers use levels in steps of ten, from 10 (trace) to 60 (fatal). */
const BY_TENS: readonly SeverityName[] = ["UNKNOWN", "TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "FATAL"];

function severityFrom(value: unknown): number | null {
  if (typeof value === "string") {
    const name = WORDS[value.toLowerCase()];
    return name === undefined ? null : SEVERITY[name];
  }
  if (typeof value !== "number" || !Number.isInteger(value) || value < 0) return null;
  const tens = BY_TENS[value / 10];
  if (value > 0 && tens !== undefined) return SEVERITY[tens];
  return value <= 24 ? value : null;
}

const LEVEL =
  /(?:^|[\s[(<|"=:])(TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL|CRITICAL|PANIC)(?=$|[\s\])>|":,;])|\blevel=["']?(\w+)|^\s*\[?(trace|debug|info|notice|warn|warning|error|fatal|critical|panic)\]?[:\]\s]/;
const ERRORS = /^\s*(?:Uncaught |Unhandled )?(?:\w*(?:Error|Exception)\b|Traceback \(most recent call last\)|panic:)/;

function guessed(text: string): SeverityName | null {
  const head = text.slice(0, GUESS_CHARS);
  const found = LEVEL.exec(head);
  const word = found?.slice(1).find((group) => group !== undefined);
  const named = word === undefined ? undefined : WORDS[word.toLowerCase()];
  return named ?? (ERRORS.test(head) ? "ERROR" : null);
}

/** Default severity: build tools write their progress to stderr, running programs write their errors there. */
const usual = (stream: "stdout" | "stderr", source: LogSource): SeverityName =>
  stream === "stderr" && source === "run" ? "ERROR" : "INFO";

const ESCAPE = String.fromCharCode(27);
/** Escape sequences for colours and cursor movement, which are removed. */
const TERMINAL = new RegExp(`${ESCAPE}\\[[0-9;?]*[A-Za-z]`, "g");
const withoutColours = (text: string): string => (text.includes(ESCAPE) ? text.replace(TERMINAL, "") : text);

const cut = (text: string, charsMax = LINE_CHARS_MAX): string =>
  text.length <= charsMax ? text : `${text.slice(0, charsMax)} [... ${text.length - charsMax} characters more]`;
