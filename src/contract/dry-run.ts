/** `?dryRun=true` on the create, update and delete of a kind: everything is checked, and nothing is changed. */
import { z } from "zod";
import type { Operation } from "./operation.ts";

export const dryRun = {
  dryRun: z.stringbool().optional().describe("Check the request and answer as if it were done; change nothing."),
};

/** Only an operation that declares the parameter can be rehearsed. */
export const canRehearse = ({ query }: Pick<Operation, "query">): boolean =>
  query !== undefined && Object.hasOwn(query.shape, "dryRun");

/** `query` as it was sent, or as it was read. */
export function isDryRun(operation: Pick<Operation, "query">, query: unknown): boolean {
  if (!canRehearse(operation)) return false;
  const { dryRun: asked } = (query ?? {}) as { dryRun?: unknown };
  return asked === true || dryRun.dryRun.safeParse(asked).data === true;
}
