/**
 * Parts of an answer that spell its text out token by token, as `logprobs` does: no pattern finds anything in tokens, so
 * they are taken out of answers that are redacted.
 */
import { isRecord } from "../../lib/untrusted-json.ts";

type Branch = Record<string, unknown> | unknown[];

const SPELLED = /logprobs|token_ids/i;

export const isBranch = (value: unknown): value is Branch => Array.isArray(value) || isRecord(value);

/** Empties those parts in place; true when there were any. */
export function dropSpelledTokens(json: unknown): boolean {
  let dropped = false;
  eachBranch(json, (branch) => {
    for (const [key, value] of Object.entries(branch)) {
      if (Array.isArray(branch) || !SPELLED.test(key) || !isBranch(value) || Object.keys(value).length === 0) continue;
      branch[key] = Array.isArray(value) ? [] : null;
      dropped = true;
    }
  });
  return dropped;
}

/** Visits every object and list, outer ones first; without recursion, because a hostile answer nests thousands deep. */
export function eachBranch(json: unknown, visit: (branch: Branch) => void): void {
  const open = isBranch(json) ? [json] : [];
  for (let branch = open.pop(); branch !== undefined; branch = open.pop()) {
    visit(branch);
    for (const value of Object.values(branch)) if (isBranch(value)) open.push(value);
  }
}
