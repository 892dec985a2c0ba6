/** One request that the interpreter answers, and what its handlers work with. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Contexts } from "./contexts.ts";
import type { Kernels } from "./jupyter/kernels.ts";

export interface Call {
  contexts: Contexts;
  kernels: Kernels;
  req: IncomingMessage;
  res: ServerResponse;
  /** The part of the path that the route's pattern captures. */
  id: string;
}

export type Route = [method: string, path: RegExp, handler: (call: Call) => Promise<void> | void];

export function emptied(res: ServerResponse, act: () => void): void {
  act();
  res.writeHead(204).end();
}
