/** The addresses that people's browsers visit while they sign in. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { CALLBACK, interactionOf } from "../auth/external/sign-in.ts";
import { ALL_SCOPES } from "../auth/oauth/access-tokens.ts";
import type { AnonymousLimit } from "../auth/oauth/anonymous-limit.ts";
import { cliNames, isRegistered } from "../auth/oauth/clients.ts";
import { deviceEntry } from "../auth/oauth/device-entry.ts";
import { returnFromProvider, type StepExchange, showStep, takeStep } from "../auth/oauth/interaction.ts";
import { messagePage, pageHeaders } from "../auth/oauth/pages.ts";
import { ROUTES } from "../auth/oauth/provider.ts";
import { CALLING_SCOPES } from "../auth/oauth/registration.ts";
import { formOf, INTERACTION, requireNavigation, rewrite, settleClient, settleScopes } from "../auth/oauth/request.ts";
import { showSignOut, signOut } from "../auth/oauth/sign-out.ts";
import { identifyBrowser, inBrowser } from "../auth/oauth/step-binding.ts";
import { errorResponse } from "./error-response.ts";
import { type CurrentProvider, type OauthRoutesOptions, originOf, type PagePass } from "./oauth-exchange.ts";
import { isAt } from "./page-host.ts";

const BODY_BYTES_MAX = 16 * 1024;
const SIGN_OUT = "/oauth/sign-out";

export function addSignInRoutes(
  routes: FastifyInstance,
  options: OauthRoutesOptions,
  currentProvider: CurrentProvider,
  pass: PagePass,
  limit: AnonymousLimit,
): void {
  const { pagesUrl, brand, scopes, store } = options;
  /** Pages are shown at their own address; whoever comes by another is led there. */
  const guard = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> => {
    if (!isAt(request, pagesUrl()) && (request.method === "GET" || request.method === "HEAD"))
      return reply.header("cache-control", "no-store").redirect(`${pagesUrl()}${request.raw.url ?? ""}`, 303);
    requireNavigation(request.raw, pagesUrl());
    return undefined;
  };
  const person = { onRequest: guard, bodyLimit: BODY_BYTES_MAX };
  /** For addresses that write something before anybody has signed in. */
  const countWrite = async (request: FastifyRequest): Promise<void> => limit(originOf(request).address);
  const stranger = { onRequest: [guard, countWrite], bodyLimit: BODY_BYTES_MAX };

  routes.get(ROUTES.authorization, stranger, async (request, reply) => {
    const asked = new URLSearchParams(queryOf(request).slice(1));
    settleClient(asked, cliNames(brand), true);
    settleScopes(asked, scopes, isRegistered(asked.get("client_id") ?? "") ? CALLING_SCOPES : [ALL_SCOPES]);
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

  /** From here on the answer is written by hand, and so is that of a failure. */
  const step = async (
    request: FastifyRequest,
    reply: FastifyReply,
    work: (exchange: StepExchange) => Promise<void>,
  ): Promise<void> => {
    const provider = await currentProvider();
    const rewritten = rewrite(request.raw, {
      issuer: pagesUrl(),
      url: request.raw.url ?? "",
      form: null,
      origin: originOf(request),
    });
    reply.hijack();
    reply.raw.setHeader("x-request-id", request.id);
    const { id } = identifyBrowser(request.headers.cookie, brand, pagesUrl().startsWith("https:"));
    try {
      await inBrowser({ id, userCode: null }, () => work({ provider, request: rewritten, response: reply.raw }));
    } catch (error) {
      const { status, body, unexpected } = errorResponse(error);
      if (unexpected) options.log.warn({ err: error, requestId: request.id }, "a sign-in failed");
      reply.raw.writeHead(status, pageHeaders()).end(messagePage("That did not work", String(body.message)));
    }
  };
  routes.get(`${INTERACTION}/:uid`, person, (request, reply) =>
    step(request, reply, (exchange) => showStep(exchange, options)),
  );
  routes.post(`${INTERACTION}/:uid`, stranger, (request, reply) => {
    const form = formOf(request.body);
    return step(request, reply, (exchange) => takeStep(exchange, form, originOf(request), options));
  });

  routes.get(SIGN_OUT, person, (request, reply) => step(request, reply, (exchange) => showSignOut(exchange, options)));
  routes.post(SIGN_OUT, person, (request, reply) => {
    const form = formOf(request.body);
    return step(request, reply, (exchange) => signOut(exchange, form, options));
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

const queryOf = ({ raw }: FastifyRequest): string => raw.url?.match(/\?.*$/s)?.[0] ?? "";
