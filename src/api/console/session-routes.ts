/**
 * How a browser gets a session of the console and the tokens that its page uses. Each answer is for the console's own
 * page alone: its origin is checked, and nothing else on the platform accepts the cookie.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { personOfLink, useConsoleLink } from "../../auth/console/console-link.ts";
import {
  beginConsoleSession,
  type ConsoleSession,
  endConsoleSession,
  findConsoleSession,
  sessionCookie,
  sessionSecret,
} from "../../auth/console/console-session.ts";
import { CONSOLE_TOKEN_SECONDS, issueConsoleToken } from "../../auth/console/console-token.ts";
import { sessionOf } from "../../auth/oauth/browser-session.ts";
import { signInPath } from "../../auth/oauth/own-client.ts";
import { formOf } from "../../auth/oauth/request.ts";
import { ROUTES } from "../../auth/oauth/routes.ts";
import { recordConsoleLink } from "../../auth/oauth/sign-in-audit.ts";
import { PlatformError } from "../../contract/errors.ts";
import { type OauthRoutesOptions, originOf } from "../oauth-exchange.ts";
import type { PageDoor } from "../page-door.ts";

const ARRIVED = "/console/arrived";
const BODY_BYTES_MAX = 1024;

export function addConsoleSessionRoutes(
  routes: FastifyInstance,
  options: OauthRoutesOptions,
  { person, stranger, step }: PageDoor,
): void {
  const { pagesUrl, brand, store, issuer } = options;
  const isSecure = (): boolean => pagesUrl().startsWith("https:");
  const cookie = (secret: string | null): string => sessionCookie(brand, isSecure(), secret);
  const own = {
    bodyLimit: BODY_BYTES_MAX,
    onRequest: async ({ headers }: FastifyRequest): Promise<void> => {
      const isForeign = (headers["sec-fetch-site"] ?? "same-origin") !== "same-origin";
      if (headers.origin !== pagesUrl() || isForeign)
        throw new PlatformError("forbidden", "Only the console's own page may ask for this.");
    },
  };
  const session = async ({ headers }: FastifyRequest): Promise<ConsoleSession | null> =>
    findConsoleSession(options, sessionSecret(headers.cookie, brand, isSecure()));
  const nameOf = async (sub: string): Promise<string> => (await store.people.getUser(sub))?.email ?? "somebody";
  const answer = (reply: FastifyReply): FastifyReply => reply.header("cache-control", "no-store");

  routes.post("/console/session", own, async (request, reply) => {
    const form = formOf(request.body);
    const link = form.get("link") ?? "";
    const here = await session(request);
    const other = await personOfLink(options, link);
    // Somebody who sends a link of their own would otherwise have others work in their account.
    if (here !== null && other !== null && other !== here.sub && form.get("replace") !== "true")
      throw new PlatformError(
        "conflict",
        `This browser is signed in as ${await nameOf(here.sub)}; the link is for ${await nameOf(other)}.`,
      );
    const welcomed = await useConsoleLink(options, link);
    if (welcomed === null)
      throw new PlatformError(
        "gone",
        "This link was used already, or is older than 30 minutes. `berth open` makes another.",
      );
    await recordConsoleLink(store, welcomed.sub, originOf(request));
    const secret = await beginConsoleSession(options, brand, welcomed);
    return answer(reply).header("set-cookie", cookie(secret)).code(204).send();
  });

  routes.post("/console/token", own, async (request, reply) => {
    const found = await session(request);
    if (found === null) throw new PlatformError("unauthenticated", "This browser is not signed in. Sign in again.");
    const token = await issueConsoleToken(options, { issuer: issuer(), brand }, found);
    return answer(reply).send({ token, expiresIn: CONSOLE_TOKEN_SECONDS });
  });

  routes.post("/console/sign-out", own, async (request, reply) => {
    const found = await session(request);
    if (found !== null) await endConsoleSession(options, found);
    // The sign-in with a password or at a provider is a session of its own, which is ended at this address.
    return answer(reply).header("set-cookie", cookie(null)).send({ next: ROUTES.end_session });
  });

  routes.get("/console/sign-in", person, (_request, reply) =>
    answer(reply).redirect(`${pagesUrl()}${signInPath(brand, pagesUrl(), { page: ARRIVED })}`, 303),
  );

  routes.get(ARRIVED, stranger, (request, reply) =>
    step(request, reply, async (exchange) => {
      const { user } = await sessionOf(exchange, store);
      const headers: Record<string, string> = { location: `${pagesUrl()}/`, "cache-control": "no-store" };
      if (user)
        headers["set-cookie"] = cookie(await beginConsoleSession(options, brand, { sub: user.sub, hangsOn: null }));
      // Cookies that the step has set stay beside this one.
      for (const [name, value] of Object.entries(headers)) exchange.response.appendHeader(name, value);
      exchange.response.writeHead(303).end();
    }),
  );
}
