/**
 * The address of a job at the inference edge is another name of its executions at the management edge: the request goes
 * on to them, and all their rules hold.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { HandledRoute } from "./deps.ts";

export interface JobHandlerDeps {
  brand: string;
  manage(req: IncomingMessage, res: ServerResponse): void;
}

export const createJobHandler =
  ({ brand, manage }: JobHandlerDeps) =>
  (req: IncomingMessage, res: ServerResponse, { workspace, name, path, trigger }: HandledRoute): void => {
    req.url = `/v0/jobs/${name}${/^\/(\?|$)/.test(path) ? startingPath(path.slice(1), trigger) : path}`;
    req.headers[`x-${brand}-workspace`] = workspace;
    manage(req, res);
  };

/** The bare address of a job, with or without a query, starts it; by a trigger, as the trigger says. */
function startingPath(query: string, trigger: string | null): string {
  const by = trigger === null ? "" : `${query === "" ? "?" : "&"}trigger=${encodeURIComponent(trigger)}`;
  return `/executions${query}${by}`;
}
