/** Fills in what the routes of a workload add to a request: headers, members of a JSON body, secrets. */
import type { Readable } from "node:stream";
import { FUNCTIONS_MAX, type FunctionBudget, fillPlaceholders } from "../../lib/network/egress/placeholders.ts";
import { type FilledRoute, HEADER_VALUE } from "../../lib/network/egress/routes.ts";
import { FRAMING, headerOf, withoutHeaders } from "./headers.ts";
import type { Hold } from "./held-bytes.ts";
import { type EgressRefusal, RefusalError, refusal } from "./refusal.ts";

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
  routes: readonly FilledRoute[],
  headers: string[],
  read: (bytesMax: number) => Promise<Buffer | null>,
): Promise<Injected> {
  const budget: FunctionBudget = { left: FUNCTIONS_MAX };
  let filled = headers;
  for (const route of routes) filled = withHeaders(route, filled, budget);
  if (filled.some((value, index) => index % 2 === 1 && !HEADER_VALUE.test(value)))
    throw new Error("a secret or a function made a header that HTTP does not allow");
  const type = headerOf(filled, "content-type") ?? "";
  const changes = routes.filter((route) => mayChangeBody(route));
  const isPlain = headerOf(filled, "content-encoding") === undefined;
  if (changes.length === 0 || !isPlain || !TEXT_TYPES.test(type)) return { headers: filled, body: null };
  const bytes = await read(BODY_BYTES_MAX);
  if (bytes === null) return { headers: filled, body: null };
  let text = bytes.toString("latin1");
  for (const route of changes) text = withBody(route, text, JSON_TYPE.test(type), budget);
  const body = Buffer.from(text, "latin1");
  return { headers: [...withoutHeaders(filled, FRAMING), "content-length", String(body.length)], body };
}

const TOO_MANY_BODIES = refusal(
  429,
  "too_many_bodies",
  "The bodies that this workload sends at once to hosts of its routes are too large together; send fewer at a time.",
);

const BODY_TOO_SLOW = refusal(408, "body_too_slow", "The body of a request to a host of a route took too long.");
const BROKEN_OFF = refusal(400, "body_broken_off", "The body of the request ended early.");

/**
 * The whole body; null when it is larger, and then the stream gives all of it again. Rejects when `hold` has no room or
 * its time is over; nothing of the body is kept then.
 */
export function readWhole(stream: Readable, bytesMax: number, hold: Hold): Promise<Buffer | null> {
  return new Promise((resolve, reject) => {
    let chunks: Buffer[] = [];
    let size = 0;
    const settle = (give: () => void): void => {
      stream.pause();
      for (const [event, listener] of Object.entries(listeners)) stream.removeListener(event, listener);
      give();
      chunks = [];
    };
    const fail = (refused: EgressRefusal): void => settle(() => reject(new RefusalError(refused)));
    const listeners: Record<string, (chunk: Buffer) => void> = {
      data(chunk) {
        if (!hold.take(chunk.length)) return fail(TOO_MANY_BODIES);
        chunks.push(chunk);
        size += chunk.length;
        if (size <= bytesMax) return;
        settle(() => {
          stream.unshift(Buffer.concat(chunks));
          resolve(null);
        });
      },
      end: () => settle(() => resolve(Buffer.concat(chunks))),
      close: () => fail(BROKEN_OFF),
      error: () => fail(BROKEN_OFF),
    };
    hold.onLate = () => fail(BODY_TOO_SLOW);
    for (const [event, listener] of Object.entries(listeners)) stream.on(event, listener);
  });
}

const mayChangeBody = ({ body, secrets, identities }: FilledRoute): boolean =>
  [body, secrets, identities].some((members) => Object.keys(members).length > 0);

/** Headers that the request has are kept: the caller wins. */
function withHeaders(route: FilledRoute, given: string[], budget: FunctionBudget): string[] {
  const filled = given.map((text, index) => (index % 2 === 1 ? fillPlaceholders(text, route, budget) : text));
  for (const [name, value] of Object.entries(route.headers))
    if (headerOf(given, name) === undefined) filled.push(name, fillPlaceholders(value, route, budget));
  return filled;
}

/** The text is one character for each byte, and so are secrets in it. */
function withBody(route: FilledRoute, text: string, isJson: boolean, budget: FunctionBudget): string {
  const { identities } = route; // tokens are ASCII without a quote
  const bytesOf = (value: string): string => Buffer.from(value).toString("latin1");
  const quoted = mapped(route.secrets, (value) => (isJson ? JSON.stringify(value).slice(1, -1) : value));
  const filled = fillPlaceholders(text, { secrets: mapped(quoted, bytesOf), identities }, budget);
  const members = isJson ? missingMembers(route.body, text) : [];
  if (members.length === 0) return filled;
  const added = members.map(
    ([name, value]) =>
      `${JSON.stringify(name)}:${fillPlaceholders(JSON.stringify(value), { secrets: quoted, identities }, budget)}`,
  );
  const rest = filled.trimStart().slice(1);
  return `{${bytesOf(added.join(","))}${rest.trimStart().startsWith("}") ? "" : ","}${rest}`;
}

const mapped = (record: Readonly<Record<string, string>>, change: (value: string) => string): Record<string, string> =>
  Object.fromEntries(Object.entries(record).map(([name, value]) => [name, change(value)]));

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
