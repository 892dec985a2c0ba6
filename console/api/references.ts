/** What a resource uses, and what uses it. */
import { call } from "./call.ts";
import { useAnswer } from "./query.ts";

export interface Named {
  kind: string;
  name: string;
}

export interface References {
  uses: readonly Named[];
  usedBy: readonly Named[];
}

export const useReferences = (workspace: string, kind: string, name: string) =>
  useAnswer<References>({
    key: ["references", workspace, kind, name],
    ask: (signal) => call({ path: "/references", query: { kind, name }, workspace, signal }),
  });
