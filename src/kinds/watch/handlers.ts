import { scopeRefusal } from "../../auth/authorize.ts";
import type { Caller } from "../../contract/caller.ts";
import { PlatformError } from "../../contract/errors.ts";
import type { Kind } from "../../contract/kind.ts";
import { KINDS } from "../index.ts";
import { listableKinds } from "../listable.ts";
import { type Implementation, implementEvents, workspaceOf } from "../port.ts";
import { changeStream } from "./change-stream.ts";
import { watchChanges } from "./operations.ts";

export const watchHandlers: readonly Implementation[] = [
  implementEvents(watchChanges, async (call, { feed, store }) =>
    changeStream({
      ...{ feed, store },
      workspace: workspaceOf(call).name,
      role: call.role,
      kinds: new Set(kindsAsked(call.query.kinds, call.caller).map(({ name }) => name)),
      after: lastEventId(call.headers["last-event-id"]),
    }),
  ),
];

function kindsAsked(given: string | undefined, caller: Caller): Kind[] {
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

const lastEventId = (header: string | string[] | undefined): string | null =>
  typeof header === "string" && header !== "" ? header : null;
