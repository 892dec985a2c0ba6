/**
 * The code interpreter: contexts that keep their variables, and executions in them whose output is streamed as JSON
 * lines. Ends executions whose caller goes away. Clients of the Jupyter kernel protocol see contexts as kernels.
 */
import { createServer } from "node:http";
import { ApiError } from "../http/api-error.ts";
import { fail } from "../http/fail.ts";
import { sendJson } from "../http/send.ts";
import { readBody, textOf } from "./body.ts";
import type { Context } from "./context.ts";
import { Contexts } from "./contexts.ts";
import { acceptChannels } from "./jupyter/channels.ts";
import { Kernels } from "./jupyter/kernels.ts";
import { KERNEL_ROUTES } from "./jupyter/routes.ts";
import { begin, listenerOf } from "./listener.ts";
import { type Call, emptied, type Route } from "./route.ts";

/** Proxies close a connection that is silent for long. Clients ignore messages of types that they do not know. */
const KEEPALIVE_MS = 20_000;
const TIMEOUT_MAX_MS = 24 * 60 * 60 * 1000;

const ROUTES: readonly Route[] = [
  ["GET", /^\/(?:health)?$/, ({ res }) => sendJson(res, 200, { status: "ok" })],
  ["GET", /^\/contexts$/, ({ contexts, res }) => sendJson(res, 200, contexts.list().map(shown))],
  ["POST", /^\/contexts$/, createContext],
  ["GET", /^\/contexts\/([^/]+)$/, ({ contexts, res, id }) => sendJson(res, 200, shown(contexts.find(id)))],
  ["DELETE", /^\/contexts\/([^/]+)$/, ({ contexts, res, id }) => emptied(res, () => contexts.remove(id))],
  [
    "POST",
    /^\/contexts\/([^/]+)\/restart$/,
    ({ contexts, res, id }) => emptied(res, () => contexts.find(id).restart()),
  ],
  [
    "POST",
    /^\/contexts\/([^/]+)\/interrupt$/,
    ({ contexts, res, id }) => emptied(res, () => contexts.find(id).interrupt()),
  ],
  ["POST", /^\/execute$/, execute],
  ...KERNEL_ROUTES,
];

/** Listens on the loopback address, on every given port. */
export async function runInterpreter(ports: readonly number[]): Promise<void> {
  const contexts = new Contexts(process.cwd());
  const kernels = new Kernels(contexts);
  for (const port of ports) {
    const server = createServer((req, res) => {
      dispatch({ contexts, kernels, req, res }).catch((error: unknown) => fail(res, error));
    });
    server.on("upgrade", (req, socket, head) => acceptChannels(kernels, req, socket, head));
    server.timeout = 0;
    server.requestTimeout = 0;
    server.keepAliveTimeout = 0;
    await new Promise<void>((resolve, reject) => server.once("error", reject).listen(port, "127.0.0.1", resolve));
    console.log(`The code interpreter listens on port ${port}.`);
  }
  for (const signal of ["SIGTERM", "SIGINT"] as const)
    process.on(signal, () => {
      contexts.close();
      process.exit(0);
    });
}

async function dispatch(call: Omit<Call, "id">): Promise<void> {
  const { req, res } = call;
  const [path = "/"] = (req.url ?? "/").split("?");
  const fitting = ROUTES.filter(([, pattern]) => pattern.test(path));
  const [, pattern, handler] = fitting.find(([method]) => method === req.method) ?? [];
  if (pattern && handler) return handler({ ...call, id: decodeURIComponent(pattern.exec(path)?.[1] ?? "") });
  if (fitting.length === 0) throw new ApiError(404, `The code interpreter has nothing at ${path}.`);
  const allowed = fitting.map(([method]) => method).join(", ");
  res.setHeader("Allow", allowed);
  throw new ApiError(405, `${req.method} is not possible here; ${allowed} is.`);
}

async function createContext({ contexts, req, res }: Call): Promise<void> {
  const body = await readBody(req);
  sendJson(res, 200, shown(contexts.create(textOf(body, "language"), textOf(body, "cwd"))));
}

const shown = ({ id, language, cwd }: Context): Record<string, string> => ({ id, language: language.name, cwd });

async function execute({ contexts, req, res }: Call): Promise<void> {
  const body = await readBody(req);
  const code = textOf(body, "code");
  if (code === undefined) throw new ApiError(400, '"code" must be a string.');
  const context = contextOf(contexts, textOf(body, "context_id"), textOf(body, "language"));
  const request = { code, env: envOf(body.env_vars), timeoutMs: timeoutOf(body.timeout_ms) };
  const listener = listenerOf(res);
  const alive = setInterval(() => listener.tell({ type: "keepalive" }), KEEPALIVE_MS);
  try {
    await context.execute(request, listener);
    if (!res.headersSent) begin(res);
    res.end();
  } finally {
    clearInterval(alive);
  }
}

function contextOf(contexts: Contexts, id: string | undefined, language: string | undefined): Context {
  if (id === undefined) return contexts.defaultOf(language);
  if (language !== undefined)
    throw new ApiError(400, 'Name either "context_id" or "language": a context has a language.');
  return contexts.find(id);
}

function envOf(value: unknown): Record<string, string> {
  if (value === undefined || value === null) return {};
  if (typeof value !== "object" || Array.isArray(value)) throw new ApiError(400, '"env_vars" must be an object.');
  for (const [name, text] of Object.entries(value)) {
    if (typeof text !== "string" || text.includes("\0"))
      throw new ApiError(400, `"env_vars.${name}" must be a string.`);
    if (name === "" || /[=\0]/.test(name)) throw new ApiError(400, `"${name}" is not the name of a variable.`);
  }
  return value as Record<string, string>;
}

function timeoutOf(value: unknown): number | null {
  if (value === undefined || value === null || value === 0) return null;
  if (typeof value !== "number" || !(value > 0) || value > TIMEOUT_MAX_MS)
    throw new ApiError(400, `"timeout_ms" must be a number of milliseconds, at most ${TIMEOUT_MAX_MS}.`);
  return value;
}
