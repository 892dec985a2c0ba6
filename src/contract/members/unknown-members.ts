/** Finds undeclared members of a body and undeclared query parameters, which have no effect. */
import type { z } from "zod";
import { nearestWord } from "../../lib/nearest-word.ts";
import { pageParameters } from "../list-query.ts";
import type { Operation } from "../operation.ts";
import { KnownMembers } from "./known-members.ts";

/** Most members to report; more are no typing mistakes. */
const FOUND_MAX = 32;
const NAME_SHOWN_MAX = 64;

/** Members of a manifest, which clients may send whole. */
const ENVELOPE: readonly string[] = ["kind", "apiVersion", "metadata"];
/** The query parameter that every operation accepts. */
const WORKSPACE = "workspace";

/**
 * Returns a sentence for each undeclared member. Members of the response are accepted too, because clients write back
 * what they read.
 */
export function unknownMembers({ body, response, verb, params }: Operation, sent: unknown): string[] {
  if (!body || sent === undefined) return [];
  const found: string[] = [];
  const known = knownOf(body, response);
  // A manifest may name the resource's parents in its metadata.
  const isAllowed = (key: string, at: string): boolean =>
    verb !== undefined && ((at === "" && ENVELOPE.includes(key)) || (at === "metadata" && params.includes(key)));
  walk(known, sent, "", isAllowed, found);
  return found;
}

/** Returns a sentence for each undeclared query parameter. A handler with a loose query checks it itself. */
export function unknownParameters({ query, paged }: Operation, sent: Readonly<Record<string, string>>): string[] {
  const found: string[] = [];
  for (const key in sent) {
    if (key === WORKSPACE || (query && (Object.hasOwn(query.shape, key) || isLoose(query)))) continue;
    if (paged && Object.hasOwn(pageParameters.shape, key)) continue;
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
    // null counts as absent.
    if (member === null) continue;
    const path = at === "" ? shown(key) : `${at}.${shown(key)}`;
    const below = known.member(key);
    if (below) walk(below, member, path, isAllowed, found);
    else if (!isAllowed(key, at) && found.length < FOUND_MAX)
      found.push(`The member '${path}' is unknown and has no effect${meant(nearOf(known, key, at))}`);
  }
}

/** A similar name in the same object, or the same name one level below. */
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
