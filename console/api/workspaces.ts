/** The workspaces of the person who is signed in. */
import { call } from "./call.ts";
import { type Question, queries, useAnswer } from "./query.ts";

export interface GroupMapping {
  groupName: string;
  role: string;
}

export interface Workspace {
  name: string;
  displayName?: string;
  accountId?: string;
  region?: string;
  groupMappings?: readonly GroupMapping[];
  createdAt?: string;
}

const KEY = ["workspaces"];

export const askWorkspaces = (): Question<Workspace[]> => ({
  key: KEY,
  ask: async (signal) => {
    const answer = await call<Workspace[] | { data: Workspace[] }>({ path: "/workspaces", signal });
    return Array.isArray(answer) ? answer : answer.data;
  },
});

export const useWorkspaces = () => useAnswer(askWorkspaces());

/** The workspace of the page; undefined until it is known. */
export const useWorkspace = (name: string): Workspace | undefined =>
  useWorkspaces().data?.find((one) => one.name === name);

const pathOf = (name: string): string => `/workspaces/${encodeURIComponent(name)}`;

/** What is left out stays as it is. */
export async function changeWorkspace(name: string, body: Partial<Workspace>): Promise<void> {
  await call({ method: "PUT", path: pathOf(name), body, workspace: name });
  await queries.invalidateQueries({ queryKey: KEY });
}

export async function createWorkspace(name: string): Promise<void> {
  await call({ method: "POST", path: "/workspaces", body: { name } });
  await queries.invalidateQueries({ queryKey: KEY });
}

export async function deleteWorkspace(name: string): Promise<void> {
  await call({ method: "DELETE", path: pathOf(name), workspace: name });
  await queries.invalidateQueries({ queryKey: KEY });
}
