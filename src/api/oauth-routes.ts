/** The authorization server's endpoints, below `/oauth` and `/v0/oauth` with one issuer, and what describes them. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { SIGNING_PURPOSE } from "../auth/oauth/access-tokens.ts";
import { createProviders, type OauthDeps, ROUTES } from "../auth/oauth/provider.ts";
import { formOf, OauthError, rewrite, settleTokenRequest } from "../auth/oauth/request.ts";

/** Grants are short texts. */
const BODY_BYTES_MAX = 32 * 1024;
/** Checkers may keep the public keys for a while; a new key is used right away, so not for long. */
const JWKS_CACHE = "public, max-age=300";
const PREFIXES = ["", "/v0"] as const;
const DISCOVERY = ["/.well-known/openid-configuration", "/.well-known/oauth-authorization-server"] as const;
export const RESOURCE_METADATA = "/.well-known/oauth-protected-resource";

export function addOauthRoutes(api: FastifyInstance, deps: OauthDeps): void {
  const currentProvider = createProviders(deps);

  /** Hands a request over as if it had come to `path`, whatever prefix it came below. */
  async function pass(request: FastifyRequest, reply: FastifyReply, path: string, form: URLSearchParams | null) {
    const provider = await currentProvider();
    const query = request.raw.url?.match(/\?.*$/s)?.[0] ?? "";
    reply.hijack();
    reply.raw.setHeader("x-request-id", request.id);
    await provider.callback()(rewrite(request.raw, path + query, form), reply.raw);
  }

  api.register(async (routes) => {
    acceptForms(routes);
    routes.setErrorHandler(refuse);
    for (const prefix of PREFIXES) {
      routes.post(prefix + ROUTES.token, { bodyLimit: BODY_BYTES_MAX }, async (request, reply) => {
        const form = formOf(request.body);
        settleTokenRequest(form, deps.scopes);
        await pass(request, reply, ROUTES.token, form);
      });
      routes.get(prefix + ROUTES.jwks, async (_request, reply) => {
        const keys = await deps.store.signingKeys.publicKeys(SIGNING_PURPOSE);
        reply.header("cache-control", JWKS_CACHE).header("access-control-allow-origin", "*");
        return { keys: keys.map((key) => JSON.parse(key) as Record<string, unknown>) };
      });
      for (const path of DISCOVERY) routes.get(prefix + path, (request, reply) => pass(request, reply, path, null));
      for (const path of [RESOURCE_METADATA, `${RESOURCE_METADATA}/*`])
        routes.get<{ Params: { "*"?: string } }>(prefix + path, async ({ params }, reply) => {
          reply.header("access-control-allow-origin", "*");
          return resourceMetadata(deps, params["*"]);
        });
    }
  });
}

/** What a client that was refused reads to learn where tokens come from. */
const resourceMetadata = ({ issuer, scopes }: OauthDeps, path: string | undefined) => ({
  resource: path ? `${issuer()}/${path}` : issuer(),
  authorization_servers: [issuer()],
  scopes_supported: [...scopes],
  bearer_methods_supported: ["header"],
});

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
