import type { Operation } from "../operation.ts";

export const VERSIONS = ["2026-04-16", "2026-04-20", "2026-04-28"] as const;
export type Version = (typeof VERSIONS)[number];
export const DEFAULT_VERSION: Version = "2026-04-16";

export interface VersionStep {
  /** The version that introduced the new behaviour; clients with an older version get the old one. */
  since: Version;
  liftQuery?(operation: Operation, query: Record<string, string>): Record<string, string>;
  /** Returns a sentence for each query parameter that would choose entries in the new version and does not in the old. */
  warn?(operation: Operation, query: Readonly<Record<string, string>>): string[];
  lower?(operation: Operation, response: unknown): unknown;
}
