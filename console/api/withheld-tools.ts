/** The definitions of tools that a pinned MCP server has approved, and those that wait for an admin. */
import { call } from "./call.ts";
import { queries, useAnswer } from "./query.ts";
import type { Workload } from "./workload.ts";

export interface WithheldTool {
  name: string;
  hash: string;
  why: "new" | "changed";
  /** What the server lists, as JSON; cut off where it is long. */
  definition: string;
  since: string;
}

export interface PinnedTools {
  /** Null = nothing is withheld. */
  pins: string | null;
  pinnedRevision: string | null;
  approved: readonly { name: string }[];
  withheld: readonly WithheldTool[];
}

/** What a server lists is recorded a moment after somebody asked it for its tools. Nothing is recorded without pins. */
const EVERY_MS = 3000;

const pathOf = (name: string): string => `/functions/${encodeURIComponent(name)}/tools`;

export const usePinnedTools = ({ workspace, name }: Workload) =>
  useAnswer<PinnedTools>({
    key: ["pinned-tools", workspace, name],
    everyMs: (last) => (last?.pins ? EVERY_MS : 0),
    ask: (signal) => call({ path: pathOf(name), workspace, signal }),
  });

/** Approves these very definitions: another one that came meanwhile is refused. */
export async function approveTools({ workspace, name }: Workload, tools: readonly WithheldTool[]): Promise<void> {
  const body = { tools: tools.map((tool) => ({ name: tool.name, hash: tool.hash })) };
  try {
    await call({ method: "POST", path: `${pathOf(name)}/approve`, body, workspace });
  } finally {
    await queries.invalidateQueries({ queryKey: ["pinned-tools", workspace, name] });
    await queries.invalidateQueries({ queryKey: ["tools", workspace] });
  }
}
