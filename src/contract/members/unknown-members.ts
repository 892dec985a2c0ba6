/** Members of a body and parameters of a query that no declaration has: nothing will come of them. */
import type { z } from "zod";
import { nearestWord } from "../../lib/nearest-word.ts";
import { listParameters } from "../list-query.ts";
import type { Operation } from "../operation.ts";
import { KnownMembers } from "./known-members.ts";

/** More than this many are no slips of the pen. */
const FOUND_MAX = 32;
const NAME_SHOWN_MAX = 64;

/** A manifest says what it is; clients may send it whole. */
const ENVELOPE: readonly string[] = ["kind", "apiVersion", "metadata"];
/** Every operation may be told its workspace in the query. */
const WORKSPACE = "workspace";

/**
 * One sentence for each member that is not declared. What an operation answers with may be sent back to it, because
 * clients write what they read.
 */
export function unknownMembers({ body, response, verb, params }: Operation, sent: unknown): string[] {
  if (!body || sent === undefined) return [];
  const found: string[] = [];
  const known = knownOf(body, response);
  // A manifest names what contains the resource: at the top, or in its metadata.
  const isAllowed = (key: string, at: string): boolean =>
    verb !== undefined && ((at === "" && ENVELOPE.includes(key)) || (at === "metadata" && params.includes(key)));
  walk(known, sent, "", isAllowed, found);
  return found;
}

/** The same for a query. Where a query is loose, its handler says what it refuses. */
export function unknownParameters({ query, paged }: Operation, sent: Readonly<Record<string, string>>): string[] {
  const found: string[] = [];
  for (const key in sent) {
    if (key === WORKSPACE || (query && (Object.hasOwn(query.shape, key) || isLoose(query)))) continue;
    if (paged && Object.hasOwn(listParameters.shape, key)) continue;
    const near = nearestWord(key.slice(0, NAME_SHOWN_MAX), Object.keys(query?.shape ?? {}));
    found.push(`The query parameter '${shown(key)}' is unknown and has no effect${meant(near)}`);
    if (found.length === FOUND_MAX) break;
  }
  return found;
}

type IsAllowed = (key: string, at: string) => boolean;

const knownByBody = new WeakMap<z.ZodType, KnownMembers>();

function knownOf(body: z.ZodType, response: z.ZodType): KnownMembers {
  const known = knownByBody.get(body) ?? new KnownMembers([body, response]);
  knownByBody.set(body, known);
  return known;
}

function walk(known: KnownMembers, value: unknown, at: string, isAllowed: IsAllowed, found: string[]): void {
  if (value === null || typeof value !== "object" || found.length >= FOUND_MAX) return;
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) walk(known.item, item, `${at}[${index}]`, isAllowed, found);
    return;
  }
  if (known.isOpen) return;
  for (const key in value) {
    const member = (value as Record<string, unknown>)[key];
    // A null stands for an absent member.
    if (member === null) continue;
    const path = at === "" ? shown(key) : `${at}.${shown(key)}`;
    const below = known.member(key);
    if (below) walk(below, member, path, isAllowed, found);
    else if (!isAllowed(key, at) && found.length < FOUND_MAX)
      found.push(`The member '${path}' is unknown and has no effect${meant(nearOf(known, key, at))}`);
  }
}

/** A member of the same place that is written much alike, or one of the same name a level below. */
function nearOf(known: KnownMembers, key: string, at: string): string | null {
  const inside = (name: string): string => (at === "" ? name : `${at}.${name}`);
  const near = nearestWord(key.slice(0, NAME_SHOWN_MAX), known.names);
  if (near !== null) return inside(near);
  const holder = known.names.find((name) => known.member(name)?.names.includes(key));
  return holder === undefined ? null : inside(`${holder}.${key}`);
}

const meant = (near: string | null): string => (near === null ? "." : `; did you mean '${near}'?`);
const shown = (key: string): string => (key.length > NAME_SHOWN_MAX ? `${key.slice(0, NAME_SHOWN_MAX)}...` : key);
const isLoose = ({ def }: z.ZodObject): boolean => def.catchall !== undefined && def.catchall._zod.def.type !== "never";
