/**
 * The last output of a workload, inside the message about its end. It may contain anything the workload knows, so it is
 * shown only to callers who may read its logs.
 */
import type { Caller } from "./caller.ts";

/** The scope for reading logs. */
export const LOGS_SCOPE = "logs:list";

const SAID = " It said: ";

export const withOutput = (why: string, output: string): string => (output === "" ? why : `${why}${SAID}${output}`);

export function withoutOutput(message: string): string {
  const at = message.indexOf(SAID);
  return at < 0 ? message : message.slice(0, at);
}

/** Whether the caller's scopes include logs; membership in the workspace is checked elsewhere. */
export const hasLogsScope = ({ scopes }: Pick<Caller, "scopes">): boolean =>
  scopes === null || scopes.has("admin") || scopes.has(LOGS_SCOPE);
