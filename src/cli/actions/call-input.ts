/** Turns arguments and options into the input of a call. */
import { existsSync, readFileSync } from "node:fs";
import { parseEnv } from "node:util";
import { z } from "zod";
import type { Client, QueryValue } from "../../client/client.ts";
import { UsageError } from "../../lib/usage-error.ts";
import { type Invocation, type OptionValue, text, texts } from "../command.ts";
import type { Variables } from "../interpolate.ts";
import { isObject, parseAssignment, parsePairs, setMember } from "../json-path.ts";
import type { Noun } from "../nouns.ts";
import type { Env } from "../project.ts";

export const connect = ({ context, options }: Invocation): Client =>
  context.connect({
    url: text(options.url),
    workspace: text(options.workspace),
    profile: text(options.profile),
    strict: options.strict === true,
  });

export const queryFrom = ({ options }: Invocation): Record<string, QueryValue> => parsePairs(texts(options.query));

/** Variables from the environment, then the files, then the options; the later wins. */
export const variablesOf = ({ options, context }: Invocation): Variables => ({
  env: Object.assign({}, context.env, ...envFiles(options)),
  secrets: parsePairs(texts(options.secret)),
});

/** The variables of each file given. */
export const envFiles = (options: Invocation["options"]): Record<string, string>[] =>
  texts(options.envFile).map((file) => {
    if (!existsSync(file)) throw new UsageError(`${file} does not exist.`);
    return parseEnv(readFileSync(file, "utf8")) as Record<string, string>;
  });

/** Variables from files and options are sent as secrets; public ones belong in [env]. */
export function givenEnvs({ options }: Invocation): Env[] {
  const given = { ...Object.assign({}, ...envFiles(options)), ...parsePairs(texts(options.secret)) };
  return Object.entries(given as Record<string, string>).map(([name, value]) => ({ name, value, secret: true }));
}

/** The body of a create or update: a file, the existing resource or nothing, with single members set on top. */
export async function bodyFrom(
  noun: Noun,
  call: Invocation,
  current: Record<string, unknown> | null = null,
): Promise<Record<string, unknown>> {
  const { options } = call;
  const body = current ?? (await fileBody(call)) ?? (hasMetadata(noun) ? { metadata: {}, spec: {} } : {});
  for (const assignment of texts(options.set)) setMember(body, ...parseAssignment(assignment));
  const head = hasMetadata(noun) ? "metadata." : "";
  for (const [key, value] of Object.entries(parsePairs(texts(options.label)))) labelsOf(body, head)[key] = value;
  const displayName = text(options.displayName);
  if (displayName !== undefined) setMember(body, `${head}displayName`, displayName);
  return body;
}

async function fileBody(call: Invocation): Promise<Record<string, unknown> | null> {
  const [file, ...more] = texts(call.options.file);
  if (file === undefined) return null;
  if (more.length > 0) throw new UsageError("only one file describes one resource.", "use `berth apply` for several");
  const { readBody } = await import("../manifest.ts");
  const value = await readBody(file, variablesOf(call), call.context);
  if (!isObject(value)) throw new UsageError(`${file} is not a resource.`);
  const { kind: _kind, apiVersion: _apiVersion, ...body } = value;
  return body;
}

/** Keys of labels may contain dots, so they are not set by path. */
function labelsOf(body: Record<string, unknown>, head: string): Record<string, unknown> {
  const owner = head === "" ? body : body.metadata;
  if (!isObject(owner)) throw new UsageError("metadata is not an object.");
  if (!isObject(owner.labels)) owner.labels = {};
  return owner.labels as Record<string, unknown>;
}

/** Most resources have their name in metadata; those of the platform itself at the top. */
export function hasMetadata(noun: Noun): boolean {
  const body = (noun.verbs.get("create") ?? noun.verbs.get("update"))?.body;
  return body instanceof z.ZodObject && "metadata" in body.shape;
}

export const namePathOf = (noun: Noun): string =>
  hasMetadata(noun) ? "metadata.name" : (noun.kind?.flat?.name ?? "name");

export function positiveNumber(value: OptionValue, option: string): number | undefined {
  if (value === undefined) return undefined;
  const number = Number(value);
  if (!(number > 0)) throw new UsageError(`${option} must be a number above 0.`);
  return number;
}
