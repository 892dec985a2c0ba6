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
  (req: IncomingMessage, res: ServerResponse, { workspace, name, path }: HandledRoute): void => {
    // The bare address of a job, with or without a query, starts it too.
    req.url = `/v0/jobs/${name}${/^\/(\?|$)/.test(path) ? `/executions${path.slice(1)}` : path}`;
    req.headers[`x-${brand}-workspace`] = workspace;
    manage(req, res);
  };
