/**
 * A Kubernetes API server for tests, which speaks the protocol of the real one as far as the driver uses it: objects with
 * versions and uids, lists in pages, watches with bookmarks, merge patches, preconditions, 409, 410 and 422, and the rules
 * of a Role. Its faults are those that a real one has: it restarts, forgets old versions, loses answers, falls silent.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { allows } from "./role.ts";
import { type KubeEvent, type KubeObject, KubeStore } from "./store.ts";
import { invalid } from "./validation.ts";

export interface Target {
  resource: string;
  namespace: string;
  name: string | undefined;
  sub: string | undefined;
}

const GROUPS: Record<string, string> = {
  "/api/v1": "pods secrets persistentvolumeclaims",
  "/apis/networking.k8s.io/v1": "networkpolicies",
};
const KINDS: Record<string, string> = {
  pods: "Pod",
  secrets: "Secret",
  persistentvolumeclaims: "PersistentVolumeClaim",
  networkpolicies: "NetworkPolicy",
};
export const API_TOKEN = "token-of-the-test";
const BOOKMARK_MS = 500;

class Refusal extends Error {
  readonly code: number;
  readonly reason: string;

  constructor(code: number, reason: string, message: string) {
    super(message);
    this.code = code;
    this.reason = reason;
  }
}

export class ApiServer {
  readonly store = new KubeStore();
  /** Reads what a container wrote; the kubelet sets it. */
  logs: (pod: KubeObject, container: string) => Buffer | null = () => null;
  /** Whether the answer to a request, which was carried out, is lost. */
  losesAnswer: (method: string, path: string) => boolean = () => false;
  /** Whether a write is refused as if another writer had been faster. */
  conflicts: (method: string, path: string) => boolean = () => false;
  /** Of the version that the API server says it has. */
  minor = "36";
  /** Every request: method and path with its query. */
  readonly requests: string[] = [];
  readonly #watches = new Set<{ tell(event: KubeEvent): void; bookmark(): void; end(): void; silent: boolean }>();
  #server: Server | null = null;
  #port = 0;
  #timer: NodeJS.Timeout | null = null;
  readonly #instance: string;

  constructor(instance = "berth") {
    this.#instance = instance;
    this.store.onEvent((event) => {
      for (const watch of this.#watches) watch.tell(event);
    });
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  async start(): Promise<void> {
    this.#server = createServer((request, response) => {
      this.#answer(request, response).catch((error: unknown) => {
        const { code, reason, message } =
          error instanceof Refusal ? error : new Refusal(500, "InternalError", String(error));
        send(response, code, { kind: "Status", apiVersion: "v1", status: "Failure", code, reason, message });
      });
    });
    this.#server.keepAliveTimeout = 60_000;
    this.#server.listen(this.#port, "127.0.0.1");
    await once(this.#server, "listening");
    this.#port = (this.#server.address() as AddressInfo).port;
    this.#timer = setInterval(() => {
      for (const watch of this.#watches) watch.bookmark();
    }, BOOKMARK_MS);
  }

  /** Ends every connection and listens no more; the objects stay. */
  async stop(): Promise<void> {
    if (this.#timer) clearInterval(this.#timer);
    const server = this.#server;
    if (!server) return;
    this.#server = null;
    const closed = once(server, "close");
    server.close();
    server.closeAllConnections();
    await closed;
  }

  /** Open watches tell nothing any more and do not end. */
  silence(): void {
    for (const watch of this.#watches) watch.silent = true;
  }

  /** Ends open watches as the API server does after some minutes. */
  endWatches(): void {
    for (const watch of this.#watches) watch.end();
  }

  get watches(): number {
    return this.#watches.size;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", "http://api");
    const method = request.method ?? "GET";
    this.requests.push(`${method} ${url.pathname}${url.search}`);
    if (request.headers.authorization !== `Bearer ${API_TOKEN}`) throw new Refusal(401, "Unauthorized", "Unauthorized");
    if (url.pathname === "/version")
      return send(response, 200, { major: "1", minor: this.minor, gitVersion: `v1.${this.minor}.0` });
    const target = targetOf(url.pathname);
    const { resource, name, sub } = target;
    const isWatch = url.searchParams.get("watch") === "true";
    const verb = verbOf(method, name, isWatch);
    if (!allows(target, verb, this.#instance))
      throw new Refusal(403, "Forbidden", `${resource} is forbidden: cannot ${verb} ${name ?? ""} ${sub ?? ""}`);
    const body = await bodyOf(request);
    if (method !== "GET" && this.conflicts(method, url.pathname))
      throw new Refusal(
        409,
        "Conflict",
        "the object has been modified; please apply your changes to the latest version",
      );
    if (isWatch) return this.#watch(url, target, response);
    const result = this.#act(method, url, target, body, request.headers["content-type"] ?? "");
    if (this.losesAnswer(method, url.pathname)) return void request.socket.destroy();
    if (Buffer.isBuffer(result)) return void response.writeHead(200, { "content-type": "text/plain" }).end(result);
    send(response, method === "POST" ? 201 : 200, result);
  }

  #act(method: string, url: URL, target: Target, body: unknown, type: string): unknown {
    const { resource, namespace, name, sub } = target;
    const { store } = this;
    if (name === undefined) {
      if (method === "POST") return this.#create(target, body as KubeObject);
      return this.#list(url, target);
    }
    const found = store.get(resource, namespace, name);
    if (!found) throw new Refusal(404, "NotFound", `${resource} "${name}" not found`);
    if (sub === "log") {
      const text = this.logs(found, url.searchParams.get("container") ?? "");
      if (text === null) throw new Refusal(400, "BadRequest", "the container is waiting to start");
      return text.subarray(0, Number(url.searchParams.get("limitBytes") ?? text.length));
    }
    if (method === "GET") return withKind(resource, found);
    if (method === "PATCH") return withKind(resource, this.#patch(target, found, body as Partial<KubeObject>, type));
    if (method === "DELETE") return this.#delete(target, found, body as DeleteOptions);
    throw new Refusal(405, "MethodNotAllowed", method);
  }

  #create({ resource, namespace }: Target, object: KubeObject): unknown {
    const problem = invalid(resource, object);
    if (problem) throw new Refusal(422, "Invalid", problem);
    const { name } = object.metadata;
    if (this.store.get(resource, namespace, name))
      throw new Refusal(409, "AlreadyExists", `${resource} "${name}" already exists`);
    const status =
      resource === "pods" ? { phase: "Pending" } : resource.startsWith("persistent") ? { phase: "Bound" } : undefined;
    const metadata = { ...object.metadata, namespace };
    return withKind(resource, this.store.add(resource, { ...object, metadata, ...(status ? { status } : {}) }));
  }

  #list(url: URL, { resource, namespace }: Target): unknown {
    const all = this.store.list(resource, namespace).filter((object) => selects(url, object));
    const from = Number(url.searchParams.get("continue")?.split(":")[1] ?? 0);
    const limit = Number(url.searchParams.get("limit") ?? all.length);
    const more = from + limit < all.length;
    const metadata = {
      resourceVersion: String(this.store.version),
      ...(more ? { continue: `at:${from + limit}` } : {}),
    };
    return { kind: `${KINDS[resource]}List`, metadata, items: all.slice(from, from + limit) };
  }

  #patch({ resource, sub }: Target, found: KubeObject, patch: Partial<KubeObject>, type: string): KubeObject {
    const wanted = patch.metadata?.resourceVersion;
    if (wanted !== undefined && wanted !== found.metadata.resourceVersion)
      throw new Refusal(
        409,
        "Conflict",
        "the object has been modified; please apply your changes to the latest version",
      );
    const next = (type.includes("strategic") ? strategic(found, patch) : merge(found, patch)) as KubeObject;
    if (sub === "resize") return this.#resize(found, next);
    if (resource === "pods" && sub === undefined && JSON.stringify(next.spec) !== JSON.stringify(found.spec))
      throw new Refusal(422, "Invalid", "spec: Forbidden: pod updates may not change fields other than the image");
    for (const field of ["uid", "name", "namespace", "creationTimestamp"] as const)
      if (next.metadata[field] !== found.metadata[field])
        throw new Refusal(422, "Invalid", `metadata.${field} is immutable`);
    return this.store.replace(resource, next);
  }

  /** Only requests and limits of containers, and only processors and memory of these. */
  #resize(found: KubeObject, next: KubeObject): KubeObject {
    const fixed = (object: KubeObject): string => {
      const spec = structuredClone(object.spec) as { containers: { resources?: Record<string, object> }[] };
      for (const { resources = {} } of spec.containers)
        for (const amounts of Object.values(resources)) Object.assign(amounts, { cpu: "", memory: "" });
      return JSON.stringify(spec);
    };
    if (fixed(next) !== fixed(found))
      throw new Refusal(422, "Invalid", "spec: Forbidden: only cpu and memory resources are mutable");
    const generation = (found.metadata.generation ?? 1) + 1;
    return this.store.replace("pods", { ...found, spec: next.spec, metadata: { ...found.metadata, generation } });
  }

  #delete({ resource }: Target, found: KubeObject, options: DeleteOptions): unknown {
    const { uid, resourceVersion } = options?.preconditions ?? {};
    if (resourceVersion !== undefined && resourceVersion !== found.metadata.resourceVersion)
      throw new Refusal(409, "Conflict", `Precondition failed: ResourceVersion in precondition: ${resourceVersion}`);
    if (uid !== undefined && uid !== found.metadata.uid)
      throw new Refusal(
        409,
        "Conflict",
        `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${found.metadata.uid}`,
      );
    const seconds = options?.gracePeriodSeconds ?? 30;
    if (resource !== "pods" || seconds === 0) {
      this.store.remove(resource, found);
      return { kind: "Status", status: "Success" };
    }
    if (found.metadata.deletionTimestamp !== undefined && seconds >= (found.metadata.deletionGracePeriodSeconds ?? 0))
      return withKind(resource, found);
    const metadata = {
      ...found.metadata,
      deletionTimestamp: new Date(Date.now() + seconds * 1000).toISOString(),
      deletionGracePeriodSeconds: seconds,
    };
    return withKind(resource, this.store.replace(resource, { ...found, metadata }));
  }

  #watch(url: URL, { resource, namespace }: Target, response: ServerResponse): void {
    const from = Number(url.searchParams.get("resourceVersion") ?? 0);
    const past = this.store.since(from, resource);
    if (past === null) throw new Refusal(410, "Expired", `too old resource version: ${from}`);
    response.writeHead(200, { "content-type": "application/json" }).flushHeaders();
    const watch = {
      silent: false,
      tell: (event: KubeEvent): void => {
        const isOurs = event.resource === resource && event.object.metadata.namespace === namespace;
        if (watch.silent || !isOurs || !selects(url, event.object)) return;
        response.write(`${JSON.stringify({ type: event.type, object: withKind(resource, event.object) })}\n`);
      },
      bookmark: (): void => {
        if (watch.silent || url.searchParams.get("allowWatchBookmarks") !== "true") return;
        const metadata = { resourceVersion: String(this.store.version), creationTimestamp: null };
        response.write(`${JSON.stringify({ type: "BOOKMARK", object: { kind: KINDS[resource], metadata } })}\n`);
      },
      end: (): void => {
        this.#watches.delete(watch);
        response.end();
      },
    };
    for (const event of past) watch.tell(event);
    this.#watches.add(watch);
    response.once("close", () => this.#watches.delete(watch));
  }
}

interface DeleteOptions {
  gracePeriodSeconds?: number;
  preconditions?: { uid?: string; resourceVersion?: string };
}

function targetOf(path: string): Target {
  for (const [group, resources] of Object.entries(GROUPS)) {
    const match = new RegExp(
      `^${group}/namespaces/([^/]+)/(${resources.split(" ").join("|")})(?:/([^/]+))?(?:/([a-z]+))?$`,
    ).exec(path);
    if (!match) continue;
    const [, namespace = "", resource = "", name, sub] = match;
    return { resource, namespace, name, sub };
  }
  throw new Refusal(404, "NotFound", "the server could not find the requested resource");
}

const verbOf = (method: string, name: string | undefined, isWatch: boolean): string =>
  method === "GET"
    ? isWatch
      ? "watch"
      : name === undefined
        ? "list"
        : "get"
    : ({ POST: "create", PATCH: "patch", DELETE: "delete" }[method] ?? method);

function selects(url: URL, object: KubeObject): boolean {
  const { labels = {}, name } = object.metadata;
  const terms = (url.searchParams.get("labelSelector") ?? "").split(",").filter(Boolean);
  const fields = (url.searchParams.get("fieldSelector") ?? "").split(",").filter(Boolean);
  const phase = (object.status as { phase?: string } | undefined)?.phase ?? "";
  const known: Record<string, string> = { "metadata.name": name, "status.phase": phase };
  return (
    terms.every((term) => {
      const [key = "", value] = term.split("=");
      return value === undefined ? labels[key] !== undefined : labels[key] === value;
    }) && fields.every((term) => known[term.split("=")[0] ?? ""] === term.split("=").at(-1))
  );
}

function merge(into: unknown, patch: unknown): unknown {
  if (!isRecord(patch)) return patch;
  const result: Record<string, unknown> = isRecord(into) ? { ...into } : {};
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete result[name];
    else result[name] = merge(result[name], value);
  }
  return result;
}

/** As `merge`, with lists of containers joined by name. */
function strategic(into: unknown, patch: unknown): unknown {
  if (Array.isArray(into) && Array.isArray(patch) && patch.every((each) => isRecord(each) && "name" in each)) {
    return into.map((each) => {
      const change = patch.find((other) => other.name === each.name);
      return change ? strategic(each, change) : each;
    });
  }
  if (!isRecord(patch)) return patch;
  const result: Record<string, unknown> = isRecord(into) ? { ...into } : {};
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete result[name];
    else result[name] = strategic(result[name], value);
  }
  return result;
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const withKind = (resource: string, object: KubeObject): unknown => ({ kind: KINDS[resource], ...object });

async function bodyOf(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const text = Buffer.concat(chunks).toString("utf8");
  return text === "" ? undefined : JSON.parse(text);
}

function send(response: ServerResponse, status: number, body: unknown): void {
  if (response.headersSent) return void response.destroy();
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}
