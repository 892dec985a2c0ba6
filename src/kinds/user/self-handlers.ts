import { makeConsoleLink } from "../../auth/console/console-link.ts";
import { changePassword, replacePassword } from "../../auth/password-change.ts";
import { type Caller, hangsOn } from "../../contract/caller.ts";
import { notFound, PlatformError } from "../../contract/errors.ts";
import { toIso } from "../../lib/time/clock.ts";
import { pagesUrl } from "../pages-url.ts";
import { type Implementation, implement, namedWorkspace } from "../port.ts";
import { describeCaller } from "./caller-rights.ts";
import { consoleLinkCreate, passwordSet, sessionDelete, sessionList, userMe } from "./self-operations.ts";

export const selfHandlers: readonly Implementation[] = [
  implement(userMe, async (call, deps) => describeCaller(call.caller, namedWorkspace(call, deps), deps)),

  implement(passwordSet, async ({ caller, body }, { store }) => {
    const user = await store.people.getUser(personOf(caller));
    if (!user) throw notFound("You");
    // An API key with all scopes and no expiry is as powerful as the password, so it may replace the password without
    // it.
    const isTrusted = caller.authMethod === "api_key" && caller.scopes === null && caller.endsAt === undefined;
    if (isTrusted) await replacePassword(store, user.sub, body.newPassword);
    else {
      const given = { current: body.currentPassword ?? "", next: body.newPassword };
      const change = await changePassword(store, user, given);
      if (change === "too_many_tries")
        throw new PlatformError("too_many_requests", "Too many tries. Wait a quarter of an hour, then try again.");
      if (change === "wrong")
        throw new PlatformError(
          "forbidden",
          user.password_hash === null
            ? "The first password is set with an API key that has all scopes and no end, or with a link of an account admin."
            : "currentPassword is not the current password.",
        );
    }
    return { message: `The password of ${user.email} is set.` };
  }),

  implement(sessionList, async ({ caller }, { store }) =>
    (await store.oauth.listSessions(personOf(caller))).map(({ id, client, createdAt, expiresAt }) => ({
      id,
      type: client === null ? ("browser" as const) : ("program" as const),
      ...(client === null ? {} : { client }),
      createdAt: toIso(createdAt),
      expiresAt: toIso(expiresAt),
    })),
  ),

  implement(sessionDelete, async ({ caller, params }, { store }) => {
    const id = params.sessionId ?? "";
    if (!(await store.oauth.endSessions(personOf(caller), id))) throw notFound(`Session '${id.slice(0, 64)}'`);
    return { message: `Session '${id}' is signed out.` };
  }),

  implement(consoleLinkCreate, async ({ caller }, { store, clock, settings }) => {
    const sub = personOf(caller);
    // A session of the console may do whatever its person may.
    if (caller.scopes !== null)
      throw new PlatformError("forbidden", "These credentials have only some scopes, and the console has all of them.");
    const link = await makeConsoleLink({ store, clock }, pagesUrl(settings), { sub, hangsOn: hangsOn(caller) });
    return { url: link.url, expiresAt: toIso(link.expiresAt) };
  }),
];

function personOf(caller: Caller): string {
  if (caller.subjectType === "user") return caller.subject;
  throw new PlatformError("forbidden", "Only people sign in; service accounts have keys and secrets.");
}
