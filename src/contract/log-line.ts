/** A line of a workload's output and its origin. */

/** Severity numbers on the wire; each name covers the numbers up to the next one. */
export const SEVERITY = { UNKNOWN: 0, TRACE: 1, DEBUG: 5, INFO: 9, WARNING: 13, ERROR: 17, FATAL: 21 } as const;
export type SeverityName = keyof typeof SEVERITY;
export const SEVERITY_NAMES = Object.keys(SEVERITY) as SeverityName[];

/** The name whose range contains the number. */
export const severityName = (severity: number): SeverityName =>
  SEVERITY_NAMES.findLast((name) => SEVERITY[name] <= severity) ?? "UNKNOWN";

/** The source of a line: the running code, or the build before it. */
export const LOG_SOURCES = ["run", "build"] as const;
export type LogSource = (typeof LOG_SOURCES)[number];

/** The owner of the output; part of the request to the driver, so that everything that runs can have a log. */
export interface LogTag {
  workspace: string;
  /** The plural of the kind, as in addresses. */
  plural: string;
  name: string;
  /** uid of the resource. */
  uid: string;
  source: LogSource;
  revision?: string;
  executionId?: string;
  taskId?: string;
}
