/** Manifests: resources written down in YAML or JSON, one or many in a file. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { parseAllDocuments, Scalar, visit } from "yaml";
import { UsageError } from "../lib/usage-error.ts";
import type { Context } from "./command.ts";
import { interpolate, isReference, type Variables } from "./interpolate.ts";
import { isObject, plainScalar } from "./json-path.ts";

/** Largest file; far more than a person writes. */
const FILE_BYTES_MAX = 16 * 1024 * 1024;
const MANIFESTS_MAX = 5000;
/** Most YAML aliases: they can expand a small file to a huge one. */
const ALIASES_MAX = 100;

export interface Manifest {
  kind: string;
  /** Everything but `kind` and `apiVersion`. */
  body: Record<string, unknown>;
  /** File and position in it, for messages. */
  origin: string;
}

export async function readManifests(
  files: readonly string[],
  variables: Variables,
  context: Context,
): Promise<Manifest[]> {
  if (files.length === 0) throw new UsageError("no file is given.", "use -f FILE, or -f - for standard input");
  const manifests: Manifest[] = [];
  for (const file of files.flatMap(expandFolder)) {
    manifests.push(...parseManifests(await readInput(file, context), file, variables));
    if (manifests.length > MANIFESTS_MAX) throw new UsageError(`more than ${MANIFESTS_MAX} resources at once.`);
  }
  if (manifests.length === 0) throw new UsageError(`${files.join(", ")}: there is nothing in it.`);
  return manifests;
}

/** Reads one YAML or JSON value from a file, for request bodies. */
export async function readBody(file: string, variables: Variables, context: Context): Promise<unknown> {
  const [first, ...more] = parseDocuments(await readInput(file, context), file, variables);
  if (more.length > 0) throw new UsageError(`${file} has more than one document.`);
  return first ?? null;
}

export function parseManifests(text: string, file: string, variables: Variables): Manifest[] {
  // A list is split into its elements, so that a JSON export can be applied.
  const values = parseDocuments(text, file, variables).flatMap((value) =>
    Array.isArray(value) ? (value as unknown[]) : [value],
  );
  return values.map((value, index) =>
    toManifest(value, `${file === "-" ? "standard input" : file}, resource ${index + 1}`),
  );
}

function toManifest(value: unknown, origin: string): Manifest {
  if (!isObject(value)) throw new UsageError(`${origin} is not a resource.`, "write kind, metadata and spec");
  const { kind, apiVersion: _apiVersion, ...body } = value;
  if (typeof kind !== "string" || kind === "") {
    throw new UsageError(`${origin} has no kind.`, "add `kind: Drive`, or whatever it is; `berth kinds` lists them");
  }
  return { kind, body, origin };
}

function parseDocuments(text: string, file: string, variables: Variables): unknown[] {
  const documents = parseAllDocuments(text);
  return (Array.isArray(documents) ? documents : []).flatMap((document) => {
    const [error] = document.errors;
    if (error) throw new UsageError(`${file}: ${error.message}`);
    visit(document, {
      Scalar(key, node) {
        if (key !== "key" && typeof node.value === "string") node.value = resolveScalar(node, node.value, variables);
      },
    });
    try {
      const value: unknown = document.toJS({ maxAliasCount: ALIASES_MAX });
      return value === null || value === undefined ? [] : [value];
    } catch (error) {
      throw new UsageError(`${file}: ${(error as Error).message}`);
    }
  });
}

function resolveScalar(node: Scalar, text: string, variables: Variables): unknown {
  const value = interpolate(text, variables);
  return node.type === Scalar.PLAIN && isReference(text) ? plainScalar(value) : value;
}

function expandFolder(path: string): string[] {
  if (path === "-" || !statOf(path).isDirectory()) return [path];
  const files = readdirSync(path).filter((name) => /\.(ya?ml|json)$/.test(name));
  if (files.length === 0) throw new UsageError(`there is no .yaml, .yml or .json file in ${path}.`);
  return files.sort().map((name) => join(path, name));
}

async function readInput(file: string, context: Context): Promise<string> {
  if (file === "-") return context.readStdin();
  if (statOf(file).size > FILE_BYTES_MAX) throw new UsageError(`${file} is larger than ${FILE_BYTES_MAX} bytes.`);
  return readFileSync(file, "utf8");
}

function statOf(path: string): ReturnType<typeof statSync> & object {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (!stat) throw new UsageError(`${path} does not exist.`);
  return stat;
}
