/** The single requests to a model, and what its token policies leave. */
import { call } from "./call.ts";
import { useAnswer } from "./query.ts";

export interface ModelRequest {
  id: string;
  time: string;
  key: { type: string; id: string; name?: string } | null;
  inputTokens: number;
  outputTokens: number;
  cachedInputTokens: number;
  cost: number;
  priced: boolean;
  estimated: boolean;
  cached: boolean;
}

export interface Budget {
  policy: string;
  per: "policy" | "key" | "session";
  endTime: string;
  limits: readonly { name: string; limit: number; used: number; left: number }[];
}

export interface RequestPage {
  data: readonly ModelRequest[];
  meta: { hasMore: boolean; nextCursor: string };
}

const EVERY_MS = 5000;
const LIMIT = "100";

const pathOf = (model: string): string => `/models/${encodeURIComponent(model)}`;

/** The newest requests of the last day; older pages are asked for by their cursor. */
export const useModelRequests = (workspace: string, model: string, cursor: string) =>
  useAnswer<RequestPage>({
    key: ["model-requests", workspace, model, cursor],
    everyMs: cursor === "" ? EVERY_MS : undefined,
    ask: (signal) => call({ path: `${pathOf(model)}/requests`, query: { limit: LIMIT, cursor }, workspace, signal }),
  });

export const useBudgets = (workspace: string, model: string) =>
  useAnswer<readonly Budget[]>({
    key: ["model-budget", workspace, model],
    everyMs: EVERY_MS,
    ask: async (signal) =>
      (await call<{ policies: Budget[] }>({ path: `${pathOf(model)}/budget`, workspace, signal })).policies,
  });
