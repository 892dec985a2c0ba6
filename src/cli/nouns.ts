/**
 * Nouns and verbs, derived from the operation list. The five common verbs are found by an operation's declaration or by
 * the end of its id. Every other operation becomes a verb of the noun that its id begins with: `invitationAccept` is
 * `invitation accept`, `passwordSet` is `password set`.
 */
import type { Kind } from "../contract/kind.ts";
import type { Operation, Verb } from "../contract/operation.ts";
import { nearestWord } from "../lib/nearest-word.ts";
import { UsageError } from "../lib/usage-error.ts";

export interface Noun {
  /** Singular, words joined by hyphens. */
  name: string;
  plural: string;
  summary: string;
  kind: Kind | null;
  verbs: ReadonlyMap<string, Operation>;
}

const VERBS: readonly Verb[] = ["list", "get", "create", "update", "delete"];

export function nounsOf(kinds: readonly Kind[], operations: readonly Operation[]): Noun[] {
  const nouns = new Map<string, { name: string; verbs: Map<string, Operation> }>();
  const others: Operation[] = [];
  for (const operation of operations) {
    const end = VERBS.find((verb) => operation.id.endsWith(capital(verb)));
    const stem = end ? operation.id.slice(0, -end.length) : null;
    const verb = operation.verb ?? end;
    const key = operation.verb && operation.kind ? fold(operation.kind) : stem === null ? null : fold(stem);
    if (!verb || key === null) {
      others.push(operation);
      continue;
    }
    const noun = nouns.get(key) ?? { name: key, verbs: new Map<string, Operation>() };
    // The id keeps the word boundaries that a kind's name may have lost.
    if (stem !== null && fold(stem) === key) noun.name = hyphenate(stem);
    noun.verbs.set(verb, operation);
    nouns.set(key, noun);
  }
  for (const operation of others) {
    const known = [...nouns.keys()]
      .filter((candidate) => operation.id.toLowerCase().startsWith(candidate))
      .sort((a, b) => b.length - a.length)[0];
    const key = known ?? operation.id.replace(/[A-Z].*/, "");
    const noun = nouns.get(key) ?? { name: key, verbs: new Map<string, Operation>() };
    noun.verbs.set(hyphenate(operation.id.slice(key.length)) || "call", operation);
    nouns.set(key, noun);
  }
  return [...nouns].map(([key, { name, verbs }]) => {
    const kind = kinds.find((candidate) => fold(candidate.name) === key) ?? null;
    const plural = kind ? hyphenate(kind.plural) : pluralOf(name);
    return { name, plural, summary: kind?.summary ?? verbs.get("list")?.summary ?? "", kind, verbs };
  });
}

/** `volumeTemplate`, `VolumeTemplates` and `volume-template` are the same noun. */
export function findNoun(nouns: readonly Noun[], given: string): Noun {
  const word = fold(given);
  const found = nouns.find((noun) => fold(noun.name) === word || fold(noun.plural) === word);
  if (found) return found;
  const near = nearestWord(
    given,
    nouns.map((noun) => noun.name),
  );
  throw new UsageError(
    `there is no kind '${given}'.${near ? ` Did you mean ${near}?` : ""}`,
    "`berth kinds` lists them all",
  );
}

export function operationOf(noun: Noun, verb: string): Operation {
  const operation = noun.verbs.get(verb);
  if (operation) return operation;
  throw new UsageError(
    `a ${noun.name} cannot be ${PARTICIPLES[verb] ?? verb}.`,
    `possible: ${[...noun.verbs.keys()].join(", ")}`,
  );
}

const PARTICIPLES: Record<string, string> = {
  list: "listed",
  get: "read",
  create: "created",
  update: "changed",
  delete: "deleted",
};

/** A path may leave out the type of an image: the server then finds the image by its name. */
const ANY: Readonly<Record<string, string>> = { resourceType: "_" };

/** Path parameters from `parent/child`; the innermost name may contain slashes. */
export function paramsFrom(operation: Operation, path: string): Record<string, string> {
  const names = operation.params;
  const given = names.length === 0 ? [] : path.split("/");
  const any = given.length === names.length - 1 ? ANY[names[0] ?? ""] : undefined;
  const parts = any === undefined ? given : [any, ...given];
  const last = parts.slice(names.length - 1).join("/");
  const values = [...parts.slice(0, names.length - 1), ...(names.length > 0 ? [last] : [])];
  if (values.length !== names.length || values.some((value) => value === "")) {
    throw new UsageError(`'${path}' does not name what ${operation.id} needs.`, `write ${placeholderOf(operation)}`);
  }
  return Object.fromEntries(names.map((name, index) => [name, values[index] ?? ""]));
}

/** How help writes the name of an operation's subject: `sandboxName/previewName`. */
export const placeholderOf = (operation: Operation): string => operation.params.join("/");

const capital = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1);
const fold = (word: string): string => word.toLowerCase().replace(/[^a-z0-9]/g, "");
export const hyphenate = (word: string): string =>
  word
    .replace(/([a-z0-9])([A-Z])/g, "$1-$2")
    .replace(/_/g, "-")
    .toLowerCase();
const pluralOf = (name: string): string =>
  /[^aeiou]y$/.test(name) ? `${name.slice(0, -1)}ies` : /(s|x|ch|sh)$/.test(name) ? `${name}es` : `${name}s`;
