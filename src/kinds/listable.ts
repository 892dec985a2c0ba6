import { scopeRefusal } from "../auth/authorize.ts";
import type { Caller } from "../contract/caller.ts";
import type { Kind } from "../contract/kind.ts";
import { KINDS } from "./index.ts";

/** The kinds whose lists these credentials may read. Every member of a workspace may read its lists. */
export const listableKinds = (caller: Caller): Kind[] =>
  KINDS.filter(({ operation: { list } }) => list && list.role === "member" && scopeRefusal(list, caller) === null);
