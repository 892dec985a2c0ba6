/** A list of the API that is no kind: asked for, and asked for again after a change. */
import { call } from "./call.ts";
import { queries, useAnswer } from "./query.ts";

export const useList = <T>(workspace: string, path: string) =>
  useAnswer<T[]>({
    key: ["list", workspace, path],
    ask: async (signal) => {
      const answer = await call<T[] | { data: T[] }>({ path, workspace, signal });
      return Array.isArray(answer) ? answer : answer.data;
    },
  });

export const listChanged = (workspace: string, path: string): Promise<void> =>
  queries.invalidateQueries({ queryKey: ["list", workspace, path] });
