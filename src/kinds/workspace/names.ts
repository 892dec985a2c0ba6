/** Names that a workspace may have, beyond the common rules: the name is the first part of its addresses. */
import type { z } from "zod";
import { isReservedWord } from "../../contract/reserved-words.ts";
import type { availabilityReason } from "./operations.ts";

export interface NameRefusal {
  reason: z.infer<typeof availabilityReason>;
  message: string;
}

/** A path of the workspace collection, and the word that stands for all workspaces of an account. */
const OWN_WORDS = new Set(["availability", "account"]);

export function refuseName(name: string, brand: string): NameRefusal | null {
  if (/^v\d/.test(name))
    return {
      reason: "forbidden_v_prefix",
      message: "A name that starts with v and a digit would look like an API version.",
    };
  if (isReservedWord(name) || OWN_WORDS.has(name))
    return { reason: "forbidden_reserved", message: `'${name}' is an address of the platform itself.` };
  for (const word of new Set([brand, "service"]))
    if (name === word || name.startsWith(`${word}-`))
      return { reason: "forbidden_service", message: `Names of the word '${word}' belong to the platform.` };
  return null;
}
