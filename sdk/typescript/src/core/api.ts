/** The generated operations as an object: `api.sandboxGet({ params: { sandboxName } })`. */
import type { Api } from "../generated/api.ts";
import { OPERATIONS } from "../generated/table.ts";
import { segment } from "./address.ts";
import type { CallInput, Items, Operation } from "./call.ts";
import { BerthError, isJson } from "./errors.ts";
import { idempotencyKey } from "./random.ts";
import type { Send, WireBody } from "./transport.ts";

/** The behaviour of the server that this SDK was made for. */
const VERSION = "2026-04-28";
/** The largest page size of any list; lists with a lower limit clamp it. */
const PAGE_LIMIT = 200;

export interface Reach {
  url: string;
  workspace: string | undefined;
  send: Send;
}

export function createApi(reach: () => Promise<Reach>): Api {
  const calls = Object.entries(OPERATIONS).map(([id, operation]) => [
    id,
    (input: CallInput = {}) => (operation.paged ? itemsOf(reach, operation, input) : call(reach, operation, input)),
  ]);
  return Object.fromEntries(calls) as Api;
}

async function call(reach: () => Promise<Reach>, operation: Operation, input: CallInput): Promise<unknown> {
  const { url, workspace, send } = await reach();
  const { method, stream } = operation;
  const { body, signal, timeoutMs } = input;
  return send(
    {
      method,
      address: `${url}/v0`,
      path: pathOf(operation, input),
      headers: {
        accept: "application/json",
        "service-version": VERSION,
        ...(workspace ? { "x-service-workspace": workspace } : {}),
        ...(body === undefined ? {} : { "content-type": stream ?? "application/json" }),
        ...(method === "POST" ? { "idempotency-key": input.idempotencyKey ?? idempotencyKey() } : {}),
      },
      body: body === undefined ? undefined : stream ? (body as WireBody) : JSON.stringify(body),
      // A POST has its idempotency key; the others do the same when they are done twice.
      repeatable: true,
      signal,
      timeoutMs,
    },
    readJson,
  );
}

export async function readJson(response: Response): Promise<unknown> {
  const text = await response.text();
  if (text === "") return null;
  try {
    return JSON.parse(text);
  } catch {
    throw new BerthError({ status: response.status, code: "not_json", message: "The answer is not JSON." });
  }
}

function pathOf({ path }: Operation, { params = {}, query = {} }: CallInput): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => segment(name, params[name] ?? ""));
  const given = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) if (value !== undefined) given.set(key, String(value));
  const text = given.toString();
  return `${filled}${text === "" ? "" : `?${text}`}`;
}

function itemsOf(reach: () => Promise<Reach>, operation: Operation, input: CallInput): Items<unknown> {
  return {
    [Symbol.asyncIterator]: () => pages(reach, operation, input),
    async toArray() {
      const all: unknown[] = [];
      for await (const item of pages(reach, operation, input)) all.push(item);
      return all;
    },
  };
}

async function* pages(
  reach: () => Promise<Reach>,
  operation: Operation,
  input: CallInput,
): AsyncGenerator<unknown, void> {
  const seen = new Set<string>();
  for (let query: CallInput["query"] = { limit: PAGE_LIMIT, ...input.query }; ; ) {
    const page = await call(reach, operation, { ...input, query });
    const { data, meta } = isJson(page) ? page : { data: page, meta: null };
    yield* Array.isArray(data) ? data : [];
    const cursor = isJson(meta) && typeof meta.nextCursor === "string" ? meta.nextCursor : "";
    if (cursor === "") return;
    if (seen.has(cursor))
      throw new BerthError({ code: "repeated_cursor", message: "The server gave the same page twice." });
    seen.add(cursor);
    query = { ...query, cursor };
  }
}
