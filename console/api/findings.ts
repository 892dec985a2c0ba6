/** What the servers find when they check their machines; only admins of the first account may ask. */
import { call } from "./call.ts";
import { useMe } from "./overview.ts";
import { useAnswer } from "./query.ts";

export interface Finding {
  check: string;
  state: "ok" | "warning" | "problem";
  says: string;
  next?: string;
  command?: string;
  /** Name of the server; empty where there is only one. */
  node: string;
}

const EVERY_MS = 60_000;

/** Warnings and problems of all live servers; problems first. */
export function useFindings(workspace: string) {
  const { data: me } = useMe(workspace);
  return useAnswer<Finding[]>({
    key: ["findings"],
    everyMs: EVERY_MS,
    enabled: me !== undefined && me.refused.nodeFindings === undefined,
    ask: async (signal) => {
      const nodes = await call<{ id: string; name: string; status: string }[]>({ path: "/nodes", workspace, signal });
      const live = nodes.filter(({ status }) => status === "live");
      const found = await Promise.all(
        live.map(async ({ id, name }) => {
          const findings = await call<Omit<Finding, "node">[]>({ path: `/nodes/${id}/findings`, workspace, signal });
          return findings.map((finding) => ({ ...finding, node: live.length === 1 ? "" : name }));
        }),
      );
      return found
        .flat()
        .filter(({ state }) => state !== "ok")
        .sort((a, b) => a.state.localeCompare(b.state));
    },
  });
}
