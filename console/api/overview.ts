/** The workspace at a glance, and what the person may do in it. */
import { call } from "./call.ts";
import { isLive } from "./live.ts";
import { type Question, useAnswer } from "./query.ts";

export interface Overview {
  kinds: readonly { kind: string; plural: string; total: number; statuses: Readonly<Record<string, number>> }[];
  failures: readonly { kind: string; name: string; status: string; reason?: string; time: string }[];
  cost?: { today: number; currency: string; since: string };
}

const EVERY_MS = 10_000;
/** Costs change without a change of a resource. */
const LIVE_EVERY_MS = 60_000;

export const askOverview = (workspace: string): Question<Overview> => ({
  key: ["overview", workspace],
  ask: (signal) => call({ path: "/overview", workspace, signal }),
});

export const useOverview = (workspace: string) =>
  useAnswer({ ...askOverview(workspace), everyMs: isLive.value ? LIVE_EVERY_MS : EVERY_MS });

export interface Me {
  sub: string;
  name: string;
  accounts: readonly { id: string; role: "member" | "admin" }[];
  /** Why an operation is not allowed, by its id. */
  refused: Readonly<Record<string, string>>;
}

export const askMe = (workspace: string): Question<Me> => ({
  key: ["me", workspace],
  ask: (signal) => call({ path: "/users/me", workspace, signal }),
});

export const useMe = (workspace: string) => useAnswer(askMe(workspace));

/** Why the person may not use an operation; null when it is allowed, or not known yet. */
export const useRefusal = (workspace: string, operation: string): string | null =>
  useMe(workspace).data?.refused[operation] ?? null;
