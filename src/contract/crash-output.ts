/**
 * The last words of a workload, inside the sentence that tells of its end. They may hold anything that the workload
 * knows, so they are shown only to callers who may read its logs.
 */
import type { Caller } from "./caller.ts";

/** What reading logs needs, in every workspace that the caller belongs to. */
export const LOGS_SCOPE = "logs:list";

const SAID = " It said: ";

export const withOutput = (why: string, output: string): string => (output === "" ? why : `${why}${SAID}${output}`);

export function withoutOutput(message: string): string {
  const at = message.indexOf(SAID);
  return at < 0 ? message : message.slice(0, at);
}

/** Whether the credentials reach as far as logs; that the caller belongs to the workspace is found out elsewhere. */
export const hasLogsScope = ({ scopes }: Pick<Caller, "scopes">): boolean =>
  scopes === null || scopes.has("admin") || scopes.has(LOGS_SCOPE);
