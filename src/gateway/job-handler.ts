/** Forwards requests to a job's inference address to its executions in the management API, whose rules apply. */
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

/** A request to the job's bare address starts an execution, with the trigger's settings if it came by one. */
function startingPath(query: string, trigger: string | null): string {
  const by = trigger === null ? "" : `${query === "" ? "?" : "&"}trigger=${encodeURIComponent(trigger)}`;
  return `/executions${query}${by}`;
}
