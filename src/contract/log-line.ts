/** What a line of a workload's output is, and whose it is. */

/** Numbers on the wire; each name stands for the numbers up to the next one. */
export const SEVERITY = { UNKNOWN: 0, TRACE: 1, DEBUG: 5, INFO: 9, WARNING: 13, ERROR: 17, FATAL: 21 } as const;
export type SeverityName = keyof typeof SEVERITY;
export const SEVERITY_NAMES = Object.keys(SEVERITY) as SeverityName[];

/** The name whose range a number lies in. */
export const severityName = (severity: number): SeverityName =>
  SEVERITY_NAMES.findLast((name) => SEVERITY[name] <= severity) ?? "UNKNOWN";

/** Where a line comes from: the running code, or the build before it. */
export const LOG_SOURCES = ["run", "build"] as const;
export type LogSource = (typeof LOG_SOURCES)[number];

/** Whose output it is; stands in what the driver is asked for, so everything that runs can have a log. */
export interface LogTag {
  workspace: string;
  /** The kind, in the plural, as it stands in addresses. */
  plural: string;
  name: string;
  /** Of the resource. */
  uid: string;
  source: LogSource;
  revision?: string;
  executionId?: string;
  taskId?: string;
}
