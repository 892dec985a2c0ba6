import { kindsAsked } from "../listable.ts";
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

const lastEventId = (header: string | string[] | undefined): string | null =>
  typeof header === "string" && header !== "" ? header : null;
