/** The authorization server's endpoints, below `/oauth` and `/v0/oauth` with one issuer, and what describes them. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { ALL_SCOPES, IDENTITY_PURPOSE, SIGNING_PURPOSE } from "../auth/oauth/access-tokens.ts";
import { type AnonymousLimit, createAnonymousLimit, TooManyWrites } from "../auth/oauth/anonymous-limit.ts";
import { askedFrom } from "../auth/oauth/client-document.ts";
import { cliNames } from "../auth/oauth/clients.ts";
import { introspect } from "../auth/oauth/introspection.ts";
import { machineScopes } from "../auth/oauth/machine-scopes.ts";
import { createProviders } from "../auth/oauth/provider.ts";
import { register } from "../auth/oauth/registration.ts";
import {
  clientOf,
  formOf,
  OauthError,
  rewrite,
  settleClient,
  settleScopes,
  settleTokenRequest,
} from "../auth/oauth/request.ts";
import { revokeAccessToken } from "../auth/oauth/revocation.ts";
import { INTROSPECTION, REGISTRATION, ROUTES } from "../auth/oauth/routes.ts";
import { identifyBrowser, inBrowser } from "../auth/oauth/step-binding.ts";
import { pageHeaders } from "../auth/pages/layout.ts";
import { WORKLOADS } from "../contract/addresses.ts";
import type { Role } from "../contract/operation.ts";
import { RESOURCE_METADATA, resourceMetadata } from "../contract/protected-resource.ts";
import { addConsoleSessionRoutes } from "./console/session-routes.ts";
import { type OauthRoutesOptions, originOf, type PagePass, type Pass } from "./oauth-exchange.ts";
import { createPageDoor } from "./page-door.ts";
import { addPersonRoutes } from "./person-routes.ts";
import { addSignInRoutes } from "./sign-in-routes.ts";

/** Grants are short texts. */
const BODY_BYTES_MAX = 32 * 1024;
/** Checkers may keep the public keys for a while; a new key is used right away, so not for long. */
const JWKS_CACHE = "public, max-age=300";
const PREFIXES = ["", "/v0"] as const;
const DISCOVERY = ["/.well-known/openid-configuration", "/.well-known/oauth-authorization-server"] as const;

export function addOauthRoutes(api: FastifyInstance, options: OauthRoutesOptions): void {
  const currentProvider = createProviders(options);
  const limit = createAnonymousLimit(options.clock, options.anonymousPerMinute, options.store.sharedUses("sign-in"));
  /** The same for a person's browser, at the address of the pages. */
  const passPage: PagePass = async (request, reply, url, form, userCode) => {
    const provider = await currentProvider();
    const pages = options.pagesUrl();
    const { id, setCookie } = identifyBrowser(request.headers.cookie, options.brand, pages.startsWith("https:"));
    reply.hijack();
    reply.raw.setHeader("x-request-id", request.id);
    for (const [name, value] of Object.entries(pageHeaders())) reply.raw.setHeader(name, value);
    if (setCookie !== null) reply.raw.appendHeader("set-cookie", setCookie);
    const origin = originOf(request);
    const rewritten = rewrite(request.raw, { issuer: pages, url, form, origin });
    await askedFrom(origin.address, () => inBrowser({ id, userCode }, () => provider.callback()(rewritten, reply.raw)));
  };
  const pass: Pass = async (request, reply, url, form) => {
    const provider = await currentProvider();
    reply.hijack();
    reply.raw.setHeader("x-request-id", request.id);
    const origin = originOf(request);
    const rewritten = rewrite(request.raw, { issuer: options.issuer(), url, form, origin });
    await askedFrom(origin.address, () => provider.callback()(rewritten, reply.raw));
  };
  api.register(async (routes) => {
    acceptForms(routes);
    routes.setErrorHandler(refuse);
    const { settled } = options;
    // What a request revoked is over everywhere when the request is answered. Answers of the provider wait there.
    if (settled) routes.addHook("onSend", (request) => (request.method === "GET" ? Promise.resolve() : settled()));
    for (const prefix of PREFIXES) {
      addDescriptions(routes, prefix, options, pass);
      addEndpoints(routes, prefix, options, pass, limit);
    }
    const door = createPageDoor(options, currentProvider, limit);
    addSignInRoutes(routes, options, door, passPage, limit);
    addPersonRoutes(routes, options, door, passPage);
    addConsoleSessionRoutes(routes, options, door);
  });
}

function addEndpoints(
  routes: FastifyInstance,
  prefix: string,
  options: OauthRoutesOptions,
  pass: Pass,
  limit: AnonymousLimit,
): void {
  const names = cliNames(options.brand);
  type Settle = (form: URLSearchParams, request: FastifyRequest) => Promise<void> | void;
  const post = (path: string, settle: Settle): void => {
    routes.post(prefix + path, { bodyLimit: BODY_BYTES_MAX }, async (request, reply) => {
      const form = formOf(request.body);
      settleClient(form, names, request.headers.authorization !== undefined);
      await settle(form, request);
      await pass(request, reply, path, form);
    });
  };
  post(ROUTES.token, (form, { headers }) =>
    settleTokenRequest(form, options.scopes, async () => {
      const [id] = clientOf(form, headers.authorization);
      const account = await options.store.keys.findServiceAccountAcrossWorkspaces(id);
      return account && machineScopes(account.role as Role, account.scopes, options.memberScopes);
    }),
  );
  post(ROUTES.device_authorization, (form, request) => {
    limit(originOf(request).address);
    settleScopes(form, options.scopes, [ALL_SCOPES]);
  });
  routes.post(prefix + ROUTES.revocation, { bodyLimit: BODY_BYTES_MAX }, async (request, reply) => {
    const form = formOf(request.body);
    const { authorization } = request.headers;
    settleClient(form, names, authorization !== undefined);
    if (await revokeAccessToken(form, authorization, options)) return reply.code(200).send();
    await pass(request, reply, ROUTES.revocation, form);
  });
  routes.post(prefix + REGISTRATION, { bodyLimit: BODY_BYTES_MAX }, async (request, reply) => {
    reply.header("cache-control", "no-store").code(201);
    return register(request.body, originOf(request).address, options);
  });
  routes.post(prefix + INTROSPECTION, { bodyLimit: BODY_BYTES_MAX }, async (request, reply) => {
    reply.header("cache-control", "no-store");
    return introspect(formOf(request.body), request.headers.authorization, options);
  });
}

function addDescriptions(routes: FastifyInstance, prefix: string, options: OauthRoutesOptions, pass: Pass): void {
  routes.get(prefix + ROUTES.jwks, async (_request, reply) => {
    const purposes = [SIGNING_PURPOSE, IDENTITY_PURPOSE];
    const keys = (await Promise.all(purposes.map((each) => options.store.signingKeys.publicKeys(each)))).flat();
    reply.header("cache-control", JWKS_CACHE).header("access-control-allow-origin", "*");
    return { keys: keys.map((key) => JSON.parse(key) as Record<string, unknown>) };
  });
  for (const path of DISCOVERY) routes.get(prefix + path, (request, reply) => pass(request, reply, path, null));
  for (const path of [RESOURCE_METADATA, `${RESOURCE_METADATA}/*`])
    routes.get<{ Params: { "*"?: string } }>(prefix + path, async ({ params }, reply) => {
      reply.header("access-control-allow-origin", "*");
      const { "*": below } = params;
      const issuer = options.issuer();
      return resourceMetadata(issuer, below ? `${issuer}/${below}` : issuer, scopesFor(below, options.scopes));
    });
}

/** Clients ask for all that is named here, so a workload names what calling it takes and nothing else. */
function scopesFor(path = "", scopes: ReadonlySet<string>): string[] {
  const [, plural] = path.split("/");
  const workload = Object.values(WORKLOADS).find((one) => one.plural === plural);
  return workload ? [workload.scope] : [...scopes].filter((scope) => scope !== ALL_SCOPES);
}

function acceptForms(routes: FastifyInstance): void {
  const parseJson = routes.getDefaultJsonParser("error", "error");
  routes.removeAllContentTypeParsers();
  routes.addContentTypeParser("application/x-www-form-urlencoded", { parseAs: "string" }, (_request, body, done) =>
    done(null, body),
  );
  routes.addContentTypeParser("application/json", { parseAs: "string" }, (request, body, done) => {
    if (body === "") done(null, undefined);
    else parseJson(request, body as string, done);
  });
}

function refuse(error: unknown, _request: FastifyRequest, reply: FastifyReply): void {
  if (error instanceof TooManyWrites) reply.header("retry-after", String(error.retryAfterSeconds));
  if (error instanceof OauthError) {
    reply.code(error.status).header("cache-control", "no-store").send(error.body);
    return;
  }
  const { statusCode = 500 } = error as { statusCode?: number };
  if (statusCode >= 500) throw error; // the platform's own handler logs it and says little
  reply.code(statusCode).send({
    error: "invalid_request",
    error_description: "Send a form or a JSON object of moderate size.",
  });
}
