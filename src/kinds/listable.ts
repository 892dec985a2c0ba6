import { scopeRefusal } from "../auth/authorize.ts";
import type { Caller } from "../contract/caller.ts";
import { PlatformError } from "../contract/errors.ts";
import type { Kind } from "../contract/kind.ts";
import { KINDS } from "./index.ts";

/** The kinds whose lists these credentials may read. Every member of a workspace may read its lists. */
export const listableKinds = (caller: Caller): Kind[] =>
  KINDS.filter(({ operation: { list } }) => list && list.role === "member" && scopeRefusal(list, caller) === null);

/** The kinds that a `kinds` parameter names, or all that the credentials may list. Refuses unknown and other kinds. */
export function kindsAsked(given: string | undefined, caller: Caller): Kind[] {
  if (!given) return listableKinds(caller);
  const listable = listableKinds(caller);
  return given.split(",").map((word) => {
    const name = word.trim().toLowerCase();
    const kind = KINDS.find((one) => one.name.toLowerCase() === name || one.plural.toLowerCase() === name);
    if (!kind)
      throw new PlatformError(
        "invalid_parameter",
        `kinds: there is no kind '${name.slice(0, 64)}'. Known are ${KINDS.map((one) => one.name).join(", ")}.`,
      );
    if (listable.includes(kind)) return kind;
    const { list } = kind.operation;
    throw new PlatformError(
      list ? "forbidden" : "invalid_parameter",
      (list && scopeRefusal(list, caller)) ?? `kinds: ${kind.plural} have no list of their own.`,
    );
  });
}
