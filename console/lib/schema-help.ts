/**
 * What a JSON Schema says about the members of a YAML text, by line. The text may be unfinished, so it is read by its
 * indentation and not by a parser: members in block style are known, those within `{}` or `[]` of one line are not.
 */
import { isObject, type Json } from "./members.ts";

export interface Member {
  name: string;
  /** `string`, `integer`, `object`, `choice` … */
  type: string;
  about: string;
}

/** A member in the text. */
export interface Written {
  name: string;
  line: number;
  /** Where its name begins in the line. */
  column: number;
  /** Names of the members around it, outermost first; `[]` for an entry of a list. */
  parents: readonly string[];
}

const ENTRY = "[]";
const KEY = /^(\s*)((?:- +)*)("[^"]*" *|'[^']*' *|[^\s#'"{}[\],&*!|>%@`-][^:#]*|-[^\s:#][^:#]*):(?=\s|$)(.*)$/;
const DASHES = /^(\s*)((?:- +)*)(-?)(?=\s|$|[^\s-])/;
/** A text over several lines begins behind it. */
const BLOCK = /(^|\s)[|>][+-]?\d*\s*(#.*)?$/;

interface Around {
  indent: number;
  name: string;
}

/** Every member of the text, in its order. */
export function readMembers(lines: readonly string[]): Written[] {
  const found: Written[] = [];
  const around: Around[] = [];
  let blockIndent: number | null = null;
  for (const [line, text] of lines.entries()) {
    if (/^\s*(#|$)/.test(text)) continue;
    const indent = text.search(/\S/);
    if (blockIndent !== null && indent > blockIndent) continue;
    blockIndent = null;
    const own = enterEntries(text, around);
    const [, , , key = "", rest = ""] = KEY.exec(text) ?? [];
    if (key === "") continue;
    leave(around, own);
    const name = key.trim().replace(/^(["'])(.*)\1$/, "$2");
    found.push({ name, line, column: own, parents: around.map(({ name: one }) => one) });
    around.push({ indent: own, name });
    if (BLOCK.test(rest)) blockIndent = own;
  }
  return found;
}

/** Names of the members around a new member at this line and column. */
export function parentsAt(lines: readonly string[], line: number, column: number): readonly string[] {
  const unfinished = `${(lines[line] ?? "").slice(0, column)}x:`;
  const found = readMembers([...lines.slice(0, line), unfinished]).at(-1);
  return found?.line === line ? found.parents : [];
}

/** Dashes of the line are entries of lists around what follows them; answers where that begins. */
function enterEntries(text: string, around: Around[]): number {
  const [, spaces = "", dashes = ""] = DASHES.exec(text) ?? [];
  let at = spaces.length;
  for (const dash of dashes.match(/- +/g) ?? []) {
    const isBefore = ({ indent, name }: Around): boolean => indent > at || (indent === at && name === ENTRY);
    while (around.length > 0 && isBefore(around.at(-1) as Around)) around.pop();
    around.push({ indent: at, name: ENTRY });
    at += dash.length;
  }
  return at;
}

function leave(around: Around[], indent: number): void {
  while (around.length > 0 && (around.at(-1) as Around).indent >= indent) around.pop();
}

/** The schema of what stands at a path; null where the schema says nothing. */
export function schemaAt(schema: unknown, path: readonly string[]): Json | null {
  let at: unknown = schema;
  for (const name of path) at = name === ENTRY ? entryOf(at) : memberOf(at, name);
  return isObject(at) ? at : null;
}

const entryOf = (schema: unknown): unknown => alternatives(schema).find(({ items }) => isObject(items))?.items;

function memberOf(schema: unknown, name: string): unknown {
  for (const { properties, additionalProperties } of alternatives(schema)) {
    if (isObject(properties) && Object.hasOwn(properties, name)) return properties[name];
    if (isTyped(additionalProperties)) return additionalProperties;
  }
  return undefined;
}

/** The schema itself and, where it takes several forms, each of them. */
function alternatives(schema: unknown): Json[] {
  if (!isObject(schema)) return [];
  const forms = [schema.anyOf, schema.oneOf, schema.allOf].flatMap((list) => (Array.isArray(list) ? list : []));
  return [schema, ...forms.filter(isObject)];
}

/** A map with values of one kind; an empty schema only says that unknown members are not refused. */
const isTyped = (schema: unknown): schema is Json => isObject(schema) && Object.keys(schema).length > 0;

export function membersOf(schema: unknown): Member[] {
  return alternatives(schema).flatMap(({ properties }) =>
    isObject(properties) ? Object.entries(properties).map(([name, member]) => ({ name, ...aboutOf(member) })) : [],
  );
}

export function aboutOf(schema: unknown): Pick<Member, "type" | "about"> {
  if (!isObject(schema)) return { type: "", about: "" };
  const about = typeof schema.description === "string" ? schema.description : "";
  if (Array.isArray(schema.enum)) return { type: schema.enum.map(String).join(" | "), about };
  const type = schema.type ?? alternatives(schema).find((one) => one.type !== undefined)?.type;
  return { type: typeof type === "string" ? type : "", about };
}

/** Values that a member may have, where they are few. */
export function valuesOf(schema: unknown): string[] {
  const found = alternatives(schema).flatMap(({ enum: values, type }) =>
    Array.isArray(values) ? values.map(String) : type === "boolean" ? ["true", "false"] : [],
  );
  return [...new Set(found)];
}

/** Members of the text that the schema does not know, where it knows what there can be. */
export const unknownMembers = (lines: readonly string[], schema: unknown): Written[] =>
  readMembers(lines).filter(({ name, parents }) => {
    const around = schemaAt(schema, parents);
    return around !== null && membersOf(around).length > 0 && memberOf(around, name) === undefined;
  });
