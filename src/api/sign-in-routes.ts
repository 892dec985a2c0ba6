/** The addresses that people's browsers visit while they sign in. */
import type { FastifyInstance } from "fastify";
import { CALLBACK, interactionOf } from "../auth/external/sign-in.ts";
import { ALL_SCOPES } from "../auth/oauth/access-tokens.ts";
import type { AnonymousLimit } from "../auth/oauth/anonymous-limit.ts";
import { cliNames, isStranger } from "../auth/oauth/clients.ts";
import { deviceEntry } from "../auth/oauth/device-entry.ts";
import { returnFromProvider, showStep, takeStep } from "../auth/oauth/interaction.ts";
import { ownClientId } from "../auth/oauth/own-client.ts";
import { CALLING_SCOPES } from "../auth/oauth/registration.ts";
import { formOf, INTERACTION, settleClient, settleScopes } from "../auth/oauth/request.ts";
import { ROUTES } from "../auth/oauth/routes.ts";
import { messagePage, pageHeaders } from "../auth/pages/layout.ts";
import { type OauthRoutesOptions, originOf, type PagePass } from "./oauth-exchange.ts";
import { type PageDoor, queryOf } from "./page-door.ts";

export function addSignInRoutes(
  routes: FastifyInstance,
  options: OauthRoutesOptions,
  door: PageDoor,
  pass: PagePass,
  limit: AnonymousLimit,
): void {
  const { pagesUrl, brand, scopes, store } = options;
  const { person, stranger, step } = door;

  routes.get(ROUTES.authorization, stranger, async (request, reply) => {
    const asked = new URLSearchParams(queryOf(request).slice(1));
    settleClient(asked, cliNames(brand), true);
    if (asked.get("client_id") === ownClientId(brand)) asked.delete("scope");
    else settleScopes(asked, scopes, isStranger(asked.get("client_id") ?? "") ? CALLING_SCOPES : [ALL_SCOPES]);
    await pass(request, reply, `${ROUTES.authorization}?${asked}`, null, null);
  });
  for (const path of [ROUTES.authorization, ROUTES.code_verification])
    routes.get(`/v0${path}`, person, (request, reply) =>
      reply.redirect(`${pagesUrl()}${path}${queryOf(request)}`, 303),
    );

  for (const path of [`${ROUTES.authorization}/:uid`, `${ROUTES.code_verification}/:uid`])
    routes.get(path, person, (request, reply) => pass(request, reply, request.raw.url ?? path, null, null));
  routes.get(ROUTES.code_verification, person, async (request, reply) => {
    const typed = new URLSearchParams(queryOf(request).slice(1)).get("user_code");
    if (typed !== null) limit(originOf(request).address);
    const page = await deviceEntry(store, ROUTES.code_verification, typed);
    // Without the code in its address: the server's own page would send it on by a script.
    if (page === null) return pass(request, reply, ROUTES.code_verification, null, typed);
    return reply.headers(pageHeaders()).send(page);
  });
  routes.post(ROUTES.code_verification, person, (request, reply) => {
    const form = formOf(request.body);
    // Forms of a session carry its secret; the page that begins one does not.
    if (form.has("xsrf")) return pass(request, reply, ROUTES.code_verification, form, null);
    const code = new URLSearchParams({ user_code: form.get("user_code") ?? "" });
    return reply.redirect(`${pagesUrl()}${ROUTES.code_verification}?${code}`, 303);
  });

  routes.get(`${INTERACTION}/:uid`, person, (request, reply) =>
    step(request, reply, (exchange) => showStep(exchange, options)),
  );
  routes.post(`${INTERACTION}/:uid`, stranger, (request, reply) => {
    const form = formOf(request.body);
    return step(request, reply, (exchange) => takeStep(exchange, form, originOf(request), options));
  });

  // The cookie of the step is sent below its own address only, so that is where the answer is taken.
  routes.get<{ Params: { id: string } }>(`${CALLBACK}/:id`, person, async (request, reply) => {
    const answer = new URLSearchParams(queryOf(request).slice(1));
    const uid = await interactionOf(options, request.params.id, answer.get("state") ?? "");
    if (uid !== null) return reply.redirect(`${pagesUrl()}${INTERACTION}/${uid}/back?${answer}`, 303);
    return reply.code(400).headers(pageHeaders()).send(messagePage("Start again", "This sign-in has ended."));
  });
  routes.get(`${INTERACTION}/:uid/back`, person, (request, reply) => {
    const answer = new URLSearchParams(queryOf(request).slice(1));
    return step(request, reply, (exchange) => returnFromProvider(exchange, answer, originOf(request), options));
  });
}
