/** `?dryRun=true` on create, update and delete of a kind: everything is checked and nothing is changed. */
import { z } from "zod";
import { PlatformError } from "./errors.ts";
import type { Operation } from "./operation.ts";

const flag = z.stringbool({ truthy: ["true", "1"], falsy: ["false", "0"] });

export const dryRun = {
  dryRun: flag.optional().describe("Check the request and answer as if it were done; change nothing."),
};

/** True for operations that declare the parameter. */
export const canRehearse = ({ query }: Pick<Operation, "query">): boolean =>
  query !== undefined && Object.hasOwn(query.shape, "dryRun");

/** `query` may be raw text or already parsed. */
export function isDryRun(operation: Pick<Operation, "query">, query: unknown): boolean {
  if (!canRehearse(operation)) return false;
  const { dryRun: asked } = (query ?? {}) as { dryRun?: unknown };
  return asked === true || dryRun.dryRun.safeParse(asked).data === true;
}

/**
 * Whoever asks for a dry run must not find that the request was carried out: the parameter is refused where it would
 * have no effect, and where it has no value. `query` is as it was sent, with empty parameters.
 */
export function refuseVainDryRun(operation: Operation, query: unknown): void {
  refuseMisspelt(operation, (query ?? {}) as Record<string, unknown>);
  const { dryRun: asked } = (query ?? {}) as { dryRun?: unknown };
  if (asked === undefined || operation.method === "GET") return;
  if (asked === "") throw new PlatformError("invalid_parameter", "dryRun: say true or false.");
  if (canRehearse(operation) || flag.safeParse(asked).data === false) return;
  throw new PlatformError(
    "invalid_parameter",
    `${operation.id} has no dry run, and was not carried out. Leave dryRun out to carry it out.`,
  );
}

/** Parameters without which a request changes something else, or changes something at all. */
const DECISIVE = ["dryRun", "workspace"];

/** Other unknown parameters have no effect, and a warning says so; without these the effect is another one. */
function refuseMisspelt({ method }: Operation, query: Record<string, unknown>): void {
  if (method === "GET") return;
  for (const key in query) {
    const word = key.replace(/[-_]/g, "").toLowerCase();
    const meant = DECISIVE.find((name) => name.toLowerCase() === word);
    if (meant === undefined || meant === key) continue;
    throw new PlatformError("invalid_parameter", `Write ${meant} for '${key}'. The request was not carried out.`);
  }
}
