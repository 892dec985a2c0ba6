/**
 * The registry at `/v2/`: the distribution protocol of OCI and Docker, over the images of workspaces. Handlers for blobs
 * and manifests are in files of their own; here a request is read, its caller judged, and a refusal told in the words of
 * the protocol.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { PlatformError } from "../../contract/errors.ts";
import { type RegistryWord, registryError } from "../../contract/registry-error.ts";
import { parseRepository } from "../../kinds/image/registry/place.ts";
import { refuseOnFullDisk } from "../../kinds/new-work.ts";
import type { Platform } from "../../kinds/port.ts";
import { auditEntry } from "../audit-call.ts";
import { type Access, type AccessDeps, createAccess, OPERATION_OF } from "./access.ts";
import { blobRoutes } from "./blob-routes.ts";
import { bodyOf } from "./body.ts";
import { manifestRoutes } from "./manifest-routes.ts";
import type { Action } from "./tokens.ts";
import { createRegistryTokens } from "./tokens.ts";
import type { DoorAnswer, DoorRoute, Visit } from "./visit.ts";

export interface DoorOptions extends Omit<AccessDeps, "tokens"> {
  deps: Platform;
}

const ROUTES: readonly DoorRoute[] = [...blobRoutes, ...manifestRoutes];
const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];
const PATH = /^\/v2\/([^/]+(?:\/[^/]+){1,2}?)\/((?:blobs|manifests|tags|referrers)\/.*)$/;

export function addRegistryDoor(api: FastifyInstance, { deps, ...parts }: DoorOptions): void {
  const access = createAccess({ ...parts, tokens: createRegistryTokens(deps) });
  api.register(async (scope) => {
    // Bodies are left in the request: handlers stream them.
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser("*", (_request, _payload, done) => done(null));
    scope.addHook("onRequest", async (_request, reply) => {
      reply.header("docker-distribution-api-version", "registry/2.0");
    });
    const config = { readsStream: true, operation: "registry" };
    const handler = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
      const { status, headers, content } = await telling(async () => {
        const { body, ...head } = await answer(request, access, deps);
        return { ...head, content: request.method === "HEAD" ? undefined : await body?.() };
      });
      return reply.code(status).headers(headers).send(content);
    };
    scope.route({ method: METHODS, url: "/v2", config, handler });
    scope.route({ method: METHODS, url: "/v2/*", config, handler });
  });
}

async function answer(request: FastifyRequest, access: Access, deps: Platform): Promise<DoorAnswer> {
  const [path = "", query = ""] = (request.raw.url ?? "").split("?");
  const [parameters, method] = [new URLSearchParams(query), request.method];
  if (/^\/v2\/?$/.test(path)) {
    await access.identify(request);
    return json({});
  }
  if (path === "/v2/token") return giveToken(request, parameters, access, deps);
  const [, repository = "", below = ""] = PATH.exec(path) ?? [];
  const there = ROUTES.filter((route) => route.path.test(below));
  const route = there.find((each) => each.method === (method === "HEAD" ? "GET" : method));
  if (!route) {
    await access.identify(request);
    if (there.length === 0)
      throw registryError("not_found", "UNSUPPORTED", "The registry has nothing at this address.");
    const allow = there.map((each) => each.method).join(", ");
    throw registryError("method_not_allowed", "UNSUPPORTED", `${method} is not possible here; ${allow} is.`, {
      headers: { allow },
    });
  }
  const { action } = route;
  const name = parseRepository(repository);
  const guest = await access.identify(request, `repository:${repository}:${scopeOf(action)}`);
  const rest = (route.path.exec(below)?.[1] ?? "").replace(/%3a/i, ":");
  const asked = { request, query: parameters, repository, name, guest, rest, deps };
  return audited(asked, route, async () => {
    const member = await access.authorize(guest, repository, action);
    if (action === "push") refuseOnFullDisk(deps.here);
    const may: Visit["may"] = (other, wanted) =>
      access.authorize(guest, other, wanted).then(
        () => true,
        () => false,
      );
    return route.handle({ ...asked, member, may });
  });
}

/** Clients that push read, too. */
const scopeOf = (action: Action): string => (action === "push" ? "pull,push" : action);

/** Writes the end of a push or delete to the audit log, and every refusal of one. */
async function audited(
  { request, name, guest, rest, deps }: Pick<Visit, "request" | "name" | "guest" | "rest" | "deps">,
  { action, isAudited }: DoorRoute,
  work: () => Promise<DoorAnswer>,
): Promise<DoorAnswer> {
  const record = async (result: { status: number } | { error: unknown }): Promise<void> => {
    const params = { resourceType: name.resourceType ?? "_", imageName: name.name, tagName: rest };
    const { clientAddress: sourceAddress, id: requestId } = request;
    const workspace = await deps.store.workspaces.get(name.workspace);
    const isMember = !("error" in result && isDenied(result.error));
    const call = { operation: OPERATION_OF[action], isSecret: false, caller: guest.caller, params, body: null };
    const entry = auditEntry({ ...call, workspace: isMember ? workspace : null, sourceAddress, requestId }, result);
    await deps.store.audit.record(entry);
  };
  try {
    const done = await work();
    if (isAudited) await record(done);
    return done;
  } catch (error) {
    if (isAudited || (action !== "pull" && isDenied(error))) await record({ error });
    throw error;
  }
}

const isDenied = (error: unknown): boolean => error instanceof PlatformError && error.code === "forbidden";

/** GET with Basic, as `docker login` asks, or a form with the same as `grant_type=password`. */
async function giveToken(
  request: FastifyRequest,
  query: URLSearchParams,
  access: Access,
  deps: Platform,
): Promise<DoorAnswer> {
  const form =
    request.method === "POST"
      ? new URLSearchParams((await bodyOf(request.raw, FORM_BYTES_MAX)).toString("utf8"))
      : query;
  const password = request.method === "POST" ? form.get("password") : null;
  const guest =
    password === null
      ? await access.identify(request)
      : await access.secretOf(form.get("username") ?? "", password, request);
  const scopes = form
    .getAll("scope")
    .flatMap((each) => each.split(" "))
    .slice(0, SCOPES_MAX);
  const { token, expiresInSeconds } = await access.grant(guest, scopes);
  const { clientAddress: sourceAddress, id: requestId } = request;
  const call = {
    operation: TOKEN,
    isSecret: false,
    caller: guest.caller,
    params: { scope: scopes.join(" ") },
    body: null,
  };
  await deps.store.audit.record(auditEntry({ ...call, workspace: null, sourceAddress, requestId }, { status: 200 }));
  return json({ token, access_token: token, expires_in: expiresInSeconds, issued_at: new Date().toISOString() });
}

const json = (value: unknown): DoorAnswer => ({
  status: 200,
  headers: { "content-type": "application/json", "cache-control": "no-store" },
  body: () => Buffer.from(JSON.stringify(value)),
});

/** The exchange of credentials for a token, as the audit log names it. */
const TOKEN = { id: "registryToken", params: ["scope"], method: "GET" } as const;
/** Scopes of one token. */
const SCOPES_MAX = 20;
const FORM_BYTES_MAX = 16 * 1024;

/** Every refusal has the members that clients of registries read. */
async function telling<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof PlatformError) || error.body?.errors !== undefined) throw error;
    throw error.with({ errors: [{ code: WORDS[error.code] ?? "UNKNOWN", message: error.message }] });
  }
}

const WORDS: Partial<Record<PlatformError["code"], RegistryWord>> = {
  forbidden: "DENIED",
  usage_limit_exceeded: "DENIED",
  insufficient_storage: "DENIED",
  too_many_requests: "TOOMANYREQUESTS",
  payload_too_large: "SIZE_INVALID",
};
