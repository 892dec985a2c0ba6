/** The management edge: one Fastify route per operation, nothing else. */
import type { RequestListener, Server } from "node:http";
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import type { Registry } from "prom-client";
import { PlatformError } from "../contract/errors.ts";
import type { Method } from "../contract/operation.ts";
import type { Implementation, Log } from "../kinds/port.ts";
import { randomWord } from "../lib/ids.ts";
import { errorResponse } from "./error-response.ts";
import { answer, type PipelineDeps } from "./pipeline.ts";
import { createRequestTimes } from "./request-times.ts";

declare module "fastify" {
  interface FastifyContextConfig {
    operation?: string;
  }
}

/** Enough for any record; operations that take more say so. */
const BODY_BYTES_MAX = 4 * 1024 * 1024;
const PARAM_LENGTH_MAX = 1024;
const METHODS: readonly Method[] = ["GET", "POST", "PUT", "DELETE"];

export interface ApiOptions extends PipelineDeps {
  implementations: readonly Implementation[];
  registry: Registry;
  /** Makes the server that the routes are reached through. */
  serverFactory(handler: RequestListener): Server;
  trustProxy: boolean;
}

export function createApi(options: ApiOptions): FastifyInstance {
  const { implementations, registry, deps } = options;
  const api = Fastify({
    serverFactory: (handler) => options.serverFactory(handler as RequestListener),
    logger: false,
    bodyLimit: BODY_BYTES_MAX,
    trustProxy: options.trustProxy,
    routerOptions: { maxParamLength: PARAM_LENGTH_MAX, ignoreTrailingSlash: true },
    genReqId: (request) => requestIdOf(request.headers["x-request-id"]),
    return503OnClosing: false,
    forceCloseConnections: "idle",
    // Operations validate with their own schemas; the validators that routes could have are not even loaded.
    schemaController: { compilersFactory: { buildValidator: noCompiler, buildSerializer: noCompiler } },
  });
  acceptJson(api);
  const times = createRequestTimes(registry);
  api.addHook("onResponse", async (request, reply) => {
    const operation = request.routeOptions.config.operation ?? "none";
    const { statusCode: status, elapsedTime: ms } = reply;
    times.observe(operation, status, ms / 1000);
    deps.log.info(
      { requestId: request.id, operation, status, ms: Math.round(ms * 100) / 100, ip: request.ip },
      "answered",
    );
  });
  api.setErrorHandler((error, request, reply) => fail(error, request, reply, deps.log));
  api.setNotFoundHandler((request, reply) =>
    fail(
      new PlatformError(
        "not_found",
        `There is nothing at ${request.method} ${request.url.split("?")[0]?.slice(0, 200)}. See /openapi.json for what there is.`,
      ),
      request,
      reply,
      deps.log,
    ),
  );
  for (const implementation of implementations)
    if (!implementation.operation.stream) addRoute(api, implementation, options);
  api.register(async (scope) => {
    // Bodies are left in the request: their handlers read them.
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser("*", (_request, _payload, done) => done(null));
    for (const implementation of implementations)
      if (implementation.operation.stream) addRoute(scope, implementation, options);
  });
  refuseOtherMethods(api, implementations, deps.log);
  return api;
}

function addRoute(api: FastifyInstance, implementation: Implementation, options: ApiOptions): void {
  const { operation } = implementation;
  api.route({
    method: operation.method,
    url: toRoute(operation.path),
    ...(operation.bodyBytesMax ? { bodyLimit: operation.bodyBytesMax } : {}),
    config: { operation: operation.id },
    handler: async (request, reply) => {
      reply.header("x-request-id", request.id);
      const stream = operation.stream ? request.raw : null;
      const result = await answer(implementation, { ...requestOf(request), stream }, options);
      reply.code(result.status).headers(result.headers);
      if (result.body !== null) reply.header("content-type", "application/json; charset=utf-8").send(result.body);
      else reply.send();
      return reply;
    },
  });
}

const noCompiler = (): never => {
  throw new Error("a route has a schema; declare it with the operation instead");
};

const toRoute = (path: string): string => `/v0${path.replace(/\{(\w+)\}/g, ":$1")}`;

const requestOf = (request: FastifyRequest) => ({
  headers: request.headers,
  params: request.params as Record<string, string>,
  query: request.query,
  body: request.body,
  requestId: request.id,
  // A connection from inside a workload has no address.
  sourceAddress: request.ip || "workload",
});

function fail(error: unknown, request: FastifyRequest, reply: FastifyReply, log: Log): FastifyReply {
  const response = errorResponse(error);
  if (response.unexpected) {
    const detail = error instanceof PlatformError ? error.detail : undefined;
    log.error(
      { err: error, detail, requestId: request.id, method: request.method, route: request.routeOptions.url },
      "request failed",
    );
  }
  // A body that nobody will read would otherwise be waited for.
  if (!request.raw.complete) reply.header("connection", "close");
  return reply
    .code(response.status)
    .headers({ ...response.headers, "x-request-id": request.id, "content-type": "application/json; charset=utf-8" })
    .send(JSON.stringify(response.body));
}

const processWord = randomWord(12);
let requests = 0;

/**
 * A caller may bring an id to follow a request through several systems; anything odd is replaced by one that names the
 * process and counts: unique like a random word, and cheaper.
 */
function requestIdOf(given: string | string[] | undefined): string {
  if (typeof given === "string" && /^[\w.:-]{1,128}$/.test(given)) return given;
  requests += 1;
  return `req-${processWord}-${requests.toString(36)}`;
}

/** An empty body is absent, whatever its type says; JSON that would change an object's prototype is refused. */
function acceptJson(api: FastifyInstance): void {
  const parseJson = api.getDefaultJsonParser("error", "error");
  api.removeAllContentTypeParsers();
  api.addContentTypeParser("application/json", { parseAs: "string" }, (request, body, done) => {
    if (body === "") done(null, undefined);
    else parseJson(request, body as string, done);
  });
}

/** A known path with another method is 405 and says which methods there are. */
function refuseOtherMethods(api: FastifyInstance, implementations: readonly Implementation[], log: Log): void {
  const methodsByPath = new Map<string, Set<Method>>();
  for (const { operation } of implementations) {
    const url = toRoute(operation.path);
    methodsByPath.set(url, (methodsByPath.get(url) ?? new Set()).add(operation.method));
  }
  for (const [url, known] of methodsByPath) {
    const allow = [...known].join(", ");
    const method = METHODS.filter((word) => !known.has(word));
    if (method.length === 0) continue;
    const handler = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
      const message = `${request.method} is not possible here; ${allow} is.`;
      return fail(new PlatformError("method_not_allowed", message, { headers: { allow } }), request, reply, log);
    };
    api.route({ method, url, handler });
  }
}
