/** Fills in what the routes of a workload add to a request: headers, members of a JSON body, secrets. */
import type { Readable } from "node:stream";
import { FUNCTIONS_MAX, type FunctionBudget, fillPlaceholders } from "../../lib/network/egress/placeholders.ts";
import { HEADER_VALUE, type Route } from "../../lib/network/egress/routes.ts";
import type { Hold } from "./held-bytes.ts";
import { RefusalError, refusal } from "./refusal.ts";

/** Larger bodies pass as they are. */
const BODY_BYTES_MAX = 2 ** 20;
const TEXT_TYPES = /^(?:application\/(?:[\w.+-]*json|x-www-form-urlencoded)|text\/)/i;
const JSON_TYPE = /^application\/(?:[\w.+-]*\+)?json\b/i;

export interface Injected {
  /** Names and values in turn. */
  headers: string[];
  /** The body in place of the request's own; null = the request's own. */
  body: Buffer | null;
}

/** Throws when a value would break the head of the request. `read` gives the body when the routes may change it. */
export async function inject(
  routes: readonly Route[],
  headers: string[],
  read: (bytesMax: number) => Promise<Buffer | null>,
): Promise<Injected> {
  const budget: FunctionBudget = { left: FUNCTIONS_MAX };
  let filled = headers;
  for (const route of routes) filled = withHeaders(route, filled, budget);
  if (filled.some((value, index) => index % 2 === 1 && !HEADER_VALUE.test(value)))
    throw new Error("a secret or a function made a header that HTTP does not allow");
  const type = headerOf(filled, "content-type") ?? "";
  const changes = routes.filter(({ body, secrets }) => Object.keys(body).length + Object.keys(secrets).length > 0);
  const isPlain = headerOf(filled, "content-encoding") === undefined;
  if (changes.length === 0 || !isPlain || !TEXT_TYPES.test(type)) return { headers: filled, body: null };
  const bytes = await read(BODY_BYTES_MAX);
  if (bytes === null) return { headers: filled, body: null };
  let text = bytes.toString("latin1");
  for (const route of changes) text = withBody(route, text, JSON_TYPE.test(type), budget);
  const body = Buffer.from(text, "latin1");
  return { headers: [...withoutLength(filled), "content-length", String(body.length)], body };
}

const TOO_MANY_BODIES = refusal(
  429,
  "too_many_bodies",
  "The bodies that this workload sends at once to hosts of its routes are too large together; send fewer at a time.",
);

/** The whole body; null when it is larger, and then the stream gives all of it again. Throws when `hold` has no room. */
export async function readWhole(stream: Readable, bytesMax: number, hold: Hold): Promise<Buffer | null> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stream.iterator({ destroyOnReturn: false })) {
    if (!hold.take(chunk.length)) throw new RefusalError(TOO_MANY_BODIES);
    chunks.push(chunk);
    size += chunk.length;
    if (size > bytesMax) {
      stream.unshift(Buffer.concat(chunks));
      return null;
    }
  }
  return Buffer.concat(chunks);
}

/** Headers that the request has are kept: the caller wins. */
function withHeaders({ headers, secrets }: Route, given: string[], budget: FunctionBudget): string[] {
  const filled = given.map((text, index) => (index % 2 === 1 ? fillPlaceholders(text, secrets, budget) : text));
  for (const [name, value] of Object.entries(headers))
    if (headerOf(given, name) === undefined) filled.push(name, fillPlaceholders(value, secrets, budget));
  return filled;
}

/** The text is one character for each byte, and so are secrets in it. */
function withBody({ body, secrets }: Route, text: string, isJson: boolean, budget: FunctionBudget): string {
  const bytesOf = (value: string): string => Buffer.from(value).toString("latin1");
  const quoted = (value: string): string => bytesOf(isJson ? JSON.stringify(value).slice(1, -1) : value);
  const written = Object.fromEntries(Object.entries(secrets).map(([name, value]) => [name, quoted(value)]));
  const filled = fillPlaceholders(text, written, budget);
  const members = isJson ? missingMembers(body, text) : [];
  if (members.length === 0) return filled;
  const added = members.map(([name, value]) => {
    const json = fillPlaceholders(
      JSON.stringify(value),
      Object.fromEntries(Object.entries(secrets).map(([key, secret]) => [key, JSON.stringify(secret).slice(1, -1)])),
      budget,
    );
    return `${JSON.stringify(name)}:${json}`;
  });
  const rest = filled.trimStart().slice(1);
  return `{${bytesOf(added.join(","))}${rest.trimStart().startsWith("}") ? "" : ","}${rest}`;
}

/** The members that the caller's object does not have; none when the body is no object. */
function missingMembers(body: Readonly<Record<string, unknown>>, text: string): [string, unknown][] {
  try {
    const given: unknown = JSON.parse(Buffer.from(text, "latin1").toString());
    if (given === null || typeof given !== "object" || Array.isArray(given)) return [];
    return Object.entries(body).filter(([name]) => !Object.hasOwn(given, name));
  } catch {
    return [];
  }
}

function headerOf(headers: readonly string[], name: string): string | undefined {
  const at = headers.findIndex((text, index) => index % 2 === 0 && text.toLowerCase() === name.toLowerCase());
  return at < 0 ? undefined : headers[at + 1];
}

const withoutLength = (headers: readonly string[]): string[] =>
  headers.filter((_, index) => !/^(?:content-length|transfer-encoding)$/i.test(headers[index - (index % 2)] ?? ""));
