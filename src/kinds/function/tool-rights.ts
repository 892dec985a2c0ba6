/**
 * Rules about tools bind those who deploy: an admin approves withheld definitions, so only an admin loosens the rules. A
 * member sets rules for a function that has none.
 */
import { PlatformError } from "../../contract/errors.ts";
import { canonicalJson } from "../../lib/canonical-json.ts";
import type { Input, PrepareContext } from "../port.ts";
import type { FunctionResource } from "./kind.ts";

export function keepToolRules(
  { spec }: Input<FunctionResource>,
  { call, current }: PrepareContext<FunctionResource>,
): void {
  const had = current?.spec.tools;
  if (had?.pins === undefined && had?.access === undefined) return;
  if (call.role === "admin" || canonicalJson(had) === canonicalJson(spec.tools ?? {})) return;
  if (spec.tools !== undefined)
    throw new PlatformError("forbidden", "This function has rules about its tools: an admin has to change spec.tools.");
  // A deployment of new code often leaves the rules out.
  spec.tools = had;
  call.warn("spec.tools stays as it is: an admin has to remove the rules about the tools of a function.");
}
