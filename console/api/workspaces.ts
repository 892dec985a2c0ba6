/** The workspaces of the person who is signed in. */
import { call } from "./call.ts";
import { useAnswer } from "./query.ts";

export interface Workspace {
  name: string;
  displayName?: string;
  accountId?: string;
}

export const useWorkspaces = () =>
  useAnswer<Workspace[]>({
    key: ["workspaces"],
    ask: async (signal) => {
      const answer = await call<Workspace[] | { data: Workspace[] }>({ path: "/workspaces", signal });
      return Array.isArray(answer) ? answer : answer.data;
    },
  });
