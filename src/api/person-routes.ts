/** The addresses of pages around a person: links that were handed to them, their account, signing out. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { ACCOUNT, ACCOUNT_PASSWORD, account, accountPassword } from "../auth/account/account.ts";
import { enterLink, linkPage, showLinkEntry } from "../auth/links/link-page.ts";
import { LINK_PATH } from "../auth/links/link-tokens.ts";
import { ARRIVED, arrivalPath } from "../auth/oauth/own-client.ts";
import { formOf } from "../auth/oauth/request.ts";
import { ROUTES } from "../auth/oauth/routes.ts";
import { type OauthRoutesOptions, originOf, type PagePass } from "./oauth-exchange.ts";
import { type PageDoor, queryOf } from "./page-door.ts";

export function addPersonRoutes(
  routes: FastifyInstance,
  options: OauthRoutesOptions,
  { person, stranger, step }: PageDoor,
  pass: PagePass,
): void {
  routes.get(LINK_PATH, person, (request, reply) =>
    step(request, reply, (exchange) => showLinkEntry(exchange, options)),
  );
  routes.post(LINK_PATH, stranger, (request, reply) =>
    step(request, reply, (exchange) => enterLink(exchange, formOf(request.body), options)),
  );
  type LinkRequest = FastifyRequest<{ Params: { id: string } }>;
  const visitLink = (request: LinkRequest, reply: FastifyReply, form: URLSearchParams | null): Promise<void> =>
    step(request, reply, (exchange) => linkPage(exchange, request.params.id, form, originOf(request), options));
  routes.get(`${LINK_PATH}/:id`, person, (request: LinkRequest, reply) => visitLink(request, reply, null));
  routes.post(`${LINK_PATH}/:id`, stranger, (request: LinkRequest, reply) =>
    visitLink(request, reply, formOf(request.body)),
  );

  routes.get(ACCOUNT, person, (request, reply) => step(request, reply, (exchange) => account(exchange, null, options)));
  routes.post(ACCOUNT, person, (request, reply) =>
    step(request, reply, (exchange) => account(exchange, formOf(request.body), options)),
  );
  routes.get(ACCOUNT_PASSWORD, person, (request, reply) =>
    step(request, reply, (exchange) => accountPassword(exchange, null, originOf(request), options)),
  );
  routes.post(ACCOUNT_PASSWORD, person, (request, reply) =>
    step(request, reply, (exchange) => accountPassword(exchange, formOf(request.body), originOf(request), options)),
  );
  // Back from signing in. A wrong address, and somebody who said no, end at the account's page.
  routes.get(ARRIVED, person, (request, reply) => {
    const path = arrivalPath(new URLSearchParams(queryOf(request)).get("state"));
    return reply.header("cache-control", "no-store").redirect(`${options.pagesUrl()}${path}`, 303);
  });

  routes.get(ROUTES.end_session, stranger, (request, reply) =>
    pass(request, reply, `${ROUTES.end_session}${queryOf(request)}`, null, null),
  );
  routes.post(`${ROUTES.end_session}/confirm`, person, (request, reply) =>
    pass(request, reply, `${ROUTES.end_session}/confirm`, formOf(request.body), null),
  );
  routes.get(`${ROUTES.end_session}/success`, person, (request, reply) =>
    pass(request, reply, `${ROUTES.end_session}/success`, null, null),
  );
}
