/**
 * Approves the tools of a newly deployed revision at its first use: the platform lists them itself, all pages, from the
 * active revision, and records their hashes before a client gets an answer.
 */
import { GatewayError } from "../../contract/gateway-errors.ts";
import type { ToolRules } from "../../contract/tools/tool-rules.ts";
import { listedTool } from "../../contract/tools/tool-state.ts";
import type { Downstream } from "../../http/downstream.ts";
import type { Call, ServeContext } from "../call.ts";
import { listTools } from "./member.ts";

/** Requests that find the same revision unpinned share one listing. */
const underWay = new WeakMap<ServeContext, Map<string, Promise<void>>>();

export async function pinned(context: ServeContext, down: Downstream, { admitted }: Call): Promise<ToolRules> {
  const { uid, workspace, name, revisions } = admitted.workload;
  const revision = revisions?.active ?? "";
  const listings = underWay.get(context) ?? new Map<string, Promise<void>>();
  underWay.set(context, listings);
  const key = `${uid}/${revision}`;
  const listing = listings.get(key) ?? approve().finally(() => listings.delete(key));
  listings.set(key, listing);
  await listing;
  const now = await context.deps.resolve({ by: "uid", workspace, uid });
  if (!now?.tools) throw new GatewayError("WORKLOAD_UNAVAILABLE", "The function has changed meanwhile: try again.");
  return now.tools;

  async function approve(): Promise<void> {
    const definitions = await listTools(
      { context, down, workspace, name, origin: "pinning" },
      new AbortController().signal,
    );
    const listed = definitions.flatMap((definition) => listedTool(definition) ?? []);
    await context.deps.toolsDeployed?.(admitted.workload, revision, listed);
  }
}
