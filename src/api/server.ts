/** The management edge: one Fastify route per operation, and the short way for plain requests. */

import type { IncomingMessage, RequestListener, Server, ServerResponse } from "node:http";
import Fastify, {
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type onRequestAsyncHookHandler,
} from "fastify";
import { Gauge, type Registry } from "prom-client";
import { PlatformError } from "../contract/errors.ts";
import type { Method } from "../contract/operation.ts";
import { clientOf, isFromServer } from "../http/peer-field.ts";
import type { UnreadAnswers } from "../http/unread-answers.ts";
import type { Implementation } from "../kinds/port.ts";
import { clientAddress, type Proxies } from "../lib/network/proxies.ts";
import type { EventStreams } from "./event-streams.ts";
import { BODY_WAIT_MS, watchBody } from "./late-body.ts";
import { API_PREFIX } from "./operation-routes.ts";
import { answer, nodeFor, type PipelineDeps, readerOf, requireRoom } from "./pipeline.ts";
import { createPlainEdge, type PlainEdge, STRICT_TRANSPORT } from "./plain-edge.ts";
import { requestIdOf } from "./request-id.ts";
import type { RequestLog } from "./request-log.ts";

declare module "fastify" {
  interface FastifyRequest {
    clientAddress: string;
  }
  interface FastifyContextConfig {
    operation?: string;
    /** The body is not read; the handler reads it as a stream. */
    readsStream?: boolean;
  }
}

/** Default limit of a body; operations that take more declare it. */
const BODY_BYTES_MAX = 4 * 1024 * 1024;
const PARAM_LENGTH_MAX = 1024;
const METHODS: readonly Method[] = ["GET", "POST", "PUT", "DELETE"];

export interface ApiOptions extends PipelineDeps {
  requestLog: RequestLog;
  implementations: readonly Implementation[];
  registry: Registry;
  /** Creates the server for the routes; plain requests may use `plain`. */
  serverFactory(handler: RequestListener, plain: PlainEdge): Server;
  /** Number of proxies in front; each adds its client to X-Forwarded-For. */
  proxies: Proxies;
  streams: EventStreams;
  bodyWaitMs?: number;
  /** Tells browsers to use HTTPS only, on hosts of the platform. */
  strictTransport?(): boolean;
  /** Hands a request whose body has not been read to another node; absent = there are no others. */
  handOn?(req: IncomingMessage, res: ServerResponse, node: string): void;
}

export function createApi(options: ApiOptions): FastifyInstance {
  const { implementations, registry, requestLog, unread, bodyWaitMs = BODY_WAIT_MS } = options;
  addUnreadGauge(registry, unread);
  let plain: PlainEdge = () => null;
  const api = Fastify({
    serverFactory: (handler) => options.serverFactory(handler as RequestListener, (head) => plain(head)),
    logger: false,
    bodyLimit: BODY_BYTES_MAX,
    routerOptions: { maxParamLength: PARAM_LENGTH_MAX, ignoreTrailingSlash: true },
    genReqId: (request) => requestIdOf(request.headers["x-request-id"]),
    return503OnClosing: false,
    forceCloseConnections: "idle",
    // Operations validate with their own schemas, so Fastify's validators are not loaded.
    schemaController: { compilersFactory: { buildValidator: noCompiler, buildSerializer: noCompiler } },
  });
  const parseJson = acceptJson(api);
  plain = createPlainEdge({ ...options, parseJson });
  // Pages, probes and descriptions are answers too.
  api.addHook("onRequest", (request, reply, done) => {
    reply.header("x-request-id", request.id);
    const { raw } = request;
    if (clientOf(raw).secure && options.strictTransport?.())
      reply.header("strict-transport-security", STRICT_TRANSPORT);
    request.clientAddress = clientAddress(
      clientOf(raw).address,
      raw.headers["x-forwarded-for"],
      options.proxies,
      clientOf(raw).workload,
    );
    const isStream = request.routeOptions.config.readsStream ?? false;
    watchBody(request.raw, { isStream, waitMs: bodyWaitMs }, () => {
      if (!reply.sent) fail(lateBody(bodyWaitMs), request, reply, requestLog);
    });
    done();
  });
  api.addHook("onResponse", async (request, reply) =>
    requestLog.answered({
      requestId: request.id,
      operation: request.routeOptions.config.operation ?? "none",
      status: reply.statusCode,
      ms: reply.elapsedTime,
      ip: request.clientAddress,
    }),
  );
  api.decorateRequest("clientAddress", "");
  api.setErrorHandler((error, request, reply) => fail(error, request, reply, requestLog));
  api.setNotFoundHandler((request, reply) =>
    fail(
      new PlatformError(
        "not_found",
        `There is nothing at ${request.method} ${request.url.split("?")[0]?.slice(0, 200)}. See /openapi.json for what there is.`,
      ),
      request,
      reply,
      requestLog,
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
  refuseOtherMethods(api, implementations, requestLog);
  return api;
}

function addRoute(
  api: FastifyInstance,
  implementation: Implementation,
  options: PipelineDeps & Pick<ApiOptions, "handOn" | "streams">,
): void {
  const { operation } = implementation;
  api.route({
    method: operation.method,
    url: toRoute(operation.path),
    ...(operation.bodyBytesMax ? { bodyLimit: operation.bodyBytesMax } : {}),
    config: { operation: operation.id, readsStream: operation.stream !== undefined },
    ...(implementation.node && options.handOn ? { onRequest: handingOn(implementation, options) } : {}),
    handler: async (request, reply) => {
      const stream = operation.stream ? request.raw : null;
      const result = await answer(implementation, { ...requestOf(request), stream }, options);
      if (result.events) {
        options.streams.requireRoom(result.events.reader);
        reply.hijack();
        options.streams.serve(reply.raw, { "x-request-id": request.id, ...result.headers }, result.events);
        return reply;
      }
      if (result.bytes) {
        const type = operation.bytes ?? "application/octet-stream";
        return reply.code(result.status).headers(result.headers).type(type).send(result.bytes);
      }
      const reader = readerOf(result);
      if (!operation.mutates) requireRoom(options.unread, reader);
      reply.code(result.status).headers(result.headers);
      if (result.body !== null) reply.header("content-type", "application/json; charset=utf-8").send(result.body);
      else reply.send();
      if (reader !== null) options.unread.written(request.raw.socket, reader);
      return reply;
    },
  });
}

function addUnreadGauge(registry: Registry, unread: UnreadAnswers): void {
  new Gauge({
    name: "berth_unread_answer_bytes",
    help: "Bytes of answers that clients have not read yet",
    registers: [registry],
    collect() {
      this.set(unread.bytes);
    },
  });
}

/** Hands the request to the node that its operation names, unless another server has handed it on already. */
function handingOn(
  implementation: Implementation,
  options: PipelineDeps & Pick<ApiOptions, "handOn">,
): onRequestAsyncHookHandler {
  return async (request, reply) => {
    const { raw } = request;
    const asked = { ...requestOf(request), stream: null };
    const node = isFromServer(raw.socket) ? null : await nodeFor(implementation, asked, options);
    if (node === null) return;
    reply.hijack();
    options.handOn?.(raw, reply.raw, node);
  };
}

const lateBody = (waitMs: number): PlatformError =>
  new PlatformError("bad_request", `The body did not arrive within ${waitMs / 1000} s.`);

const noCompiler = (): never => {
  throw new Error("a route has a schema; declare it with the operation instead");
};

const toRoute = (path: string): string => `${API_PREFIX}${path.replace(/\{(\w+)\}/g, ":$1")}`;

const requestOf = (request: FastifyRequest) => ({
  headers: request.headers,
  params: request.params as Record<string, string>,
  query: request.query,
  body: request.body,
  requestId: request.id,
  sourceAddress: request.clientAddress,
  notes: {},
});

function fail(error: unknown, request: FastifyRequest, reply: FastifyReply, requestLog: RequestLog): FastifyReply {
  const { id: requestId, method } = request;
  const response = requestLog.refusal(error, { requestId, method, route: request.routeOptions.url });
  // Closes the connection instead of waiting for a body that is not read.
  // HTTP/2 ends the stream and keeps the connection.
  if (!request.raw.complete && request.raw.httpVersionMajor < 2) reply.header("connection", "close");
  return reply
    .code(response.status)
    .headers({ ...response.headers, "content-type": "application/json; charset=utf-8" })
    .send(JSON.stringify(response.body));
}

/**
 * An empty body is absent, whatever its type says; JSON that would change an object's prototype is refused. Returns the
 * same reading for bodies that come another way.
 */
function acceptJson(api: FastifyInstance): (text: string) => unknown {
  const parseJson = api.getDefaultJsonParser("error", "error");
  api.removeAllContentTypeParsers();
  api.addContentTypeParser("application/json", { parseAs: "string" }, (request, body, done) => {
    if (body === "") done(null, undefined);
    else parseJson(request, body as string, done);
  });
  return (text) => {
    let read: unknown;
    parseJson(undefined as unknown as FastifyRequest, text, (error, body) => {
      if (error) throw error;
      read = body;
    });
    return read;
  };
}

/** A known path with another method is 405 and says which methods there are. */
function refuseOtherMethods(
  api: FastifyInstance,
  implementations: readonly Implementation[],
  requestLog: RequestLog,
): void {
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
      return fail(new PlatformError("method_not_allowed", message, { headers: { allow } }), request, reply, requestLog);
    };
    api.route({ method, url, handler });
  }
}
