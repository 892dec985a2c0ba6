/** Makes the platform hold what manifests say: replace, and create what is not there yet. */
import { isDeepStrictEqual } from "node:util";
import { ApiError } from "../../client/api-error.ts";
import type { Client } from "../../client/client.ts";
import { unknownMembers } from "../../contract/members/unknown-members.ts";
import type { Operation } from "../../contract/operation.ts";
import { UsageError } from "../../lib/usage-error.ts";
import { tellCallbackSecrets } from "../callback-secrets.ts";
import { isObject, memberAt } from "../json-path.ts";
import type { Manifest } from "../manifest.ts";
import { findNoun, type Noun, operationOf } from "../nouns.ts";
import type { Change, Outcome } from "./changes.ts";

export interface ApplyDeps {
  nouns: readonly Noun[];
  client: Client;
  dryRun: boolean;
  /** What exists already is an error. */
  createOnly: boolean;
  /** A member that nobody knows is an error. */
  strict: boolean;
  /** Tells what nobody can read again. */
  note(line: string): void;
}

export function applyManifest(manifest: Manifest, deps: ApplyDeps): Promise<Change> {
  return settle(manifest, deps, async (noun, name) => {
    checkBody(noun, manifest, deps);
    if (deps.dryRun) return (await exists(noun, name, manifest, deps)) ? "would be configured" : "would be created";
    if (deps.createOnly) return create(noun, manifest, deps);
    const update = noun.verbs.get("update");
    // Without a name there is nothing to replace: the platform makes one up.
    if (name === "") return create(noun, manifest, deps);
    if (!update) return createOrCompare(noun, manifest, deps);
    const input = { params: paramsOf(update, noun, manifest), body: bodyOf(noun, manifest) };
    const before = await read(noun, manifest, deps);
    const changed = await unlessStatus([404, 405], deps.client.call(update, input));
    if (changed === MISSED) return create(noun, manifest, deps);
    tellCallbackSecrets(changed, deps.note);
    return isSame(before, changed) ? "unchanged" : "configured";
  });
}

export function deleteManifest(manifest: Manifest, deps: ApplyDeps): Promise<Change> {
  return settle(manifest, deps, async (noun, name) => {
    if (deps.dryRun) return (await exists(noun, name, manifest, deps)) ? "would be deleted" : "not there";
    const operation = operationOf(noun, "delete");
    const input = { params: paramsOf(operation, noun, manifest) };
    return (await unlessStatus([404], deps.client.call(operation, input))) === MISSED ? "not there" : "deleted";
  });
}

/** One resource that fails does not keep the others from being applied. */
async function settle(
  manifest: Manifest,
  { nouns }: Pick<ApplyDeps, "nouns">,
  work: (noun: Noun, name: string) => Promise<Outcome>,
): Promise<Change> {
  const noun = findNoun(nouns, manifest.kind);
  const name = ownName(noun, manifest);
  try {
    return { kind: noun.name, name, outcome: await work(noun, name) };
  } catch (error) {
    return { kind: noun.name, name, outcome: "failed", error };
  }
}

async function create(noun: Noun, manifest: Manifest, { client, note }: ApplyDeps): Promise<Outcome> {
  const operation = operationOf(noun, "create");
  const input = { params: paramsOf(operation, noun, manifest), body: bodyOf(noun, manifest) };
  tellCallbackSecrets(await client.call(operation, input), note);
  return "created";
}

/** A kind that cannot be changed may be applied again, as long as nothing in it was. */
async function createOrCompare(noun: Noun, manifest: Manifest, deps: ApplyDeps): Promise<Outcome> {
  try {
    return await create(noun, manifest, deps);
  } catch (error) {
    const reading = noun.verbs.get("get");
    if (!reading || !(error instanceof ApiError) || error.status !== 409) throw error;
    const current = await deps.client.call(reading, { params: paramsOf(reading, noun, manifest) });
    if (!contains(memberAt(current, "spec"), memberAt(manifest.body, "spec"))) throw error;
    return "unchanged";
  }
}

const contains = (whole: unknown, part: unknown): boolean =>
  isObject(part) && isObject(whole)
    ? Object.entries(part).every(([key, value]) => contains(whole[key], value))
    : part === undefined || isDeepStrictEqual(whole, part);

const exists = async (noun: Noun, name: string, manifest: Manifest, deps: ApplyDeps): Promise<boolean> =>
  name !== "" && (await read(noun, manifest, deps)) !== MISSED;

/** MISSED when it is not there, or cannot be read. */
async function read(noun: Noun, manifest: Manifest, { client }: ApplyDeps): Promise<unknown> {
  const operation = noun.verbs.get("get");
  if (!operation) return MISSED;
  return unlessStatus([403, 404], client.call(operation, { params: paramsOf(operation, noun, manifest) }));
}

/**
 * Whether a replacement changed nothing that its author wrote. A secret is masked in both answers, but a new one leaves
 * an event.
 */
const isSame = (before: unknown, after: unknown): boolean =>
  ["spec", "metadata.labels", "metadata.displayName", "events"].every((path) =>
    isDeepStrictEqual(memberAt(before, path), memberAt(after, path)),
  ) && memberAt(after, "spec") !== undefined;

const MISSED = Symbol("missed");

const unlessStatus = <T>(statuses: readonly number[], call: Promise<T>): Promise<T | typeof MISSED> =>
  call.catch((error: unknown) => {
    if (error instanceof ApiError && statuses.includes(error.status)) return MISSED;
    throw error;
  });

/** Says what is wrong before anything is sent; the server has the last word on what the schema cannot say. */
function checkBody(noun: Noun, manifest: Manifest, { dryRun, strict, note }: CheckDeps): void {
  const operation = noun.verbs.get("create") ?? noun.verbs.get("update");
  if (!operation?.body) return;
  const body = bodyOf(noun, manifest);
  const unknown = unknownMembers(operation, body);
  const result = operation.body.safeParse(body);
  const broken = (result.error?.issues ?? []).map((issue) => `${issue.path.join(".") || "it"}: ${issue.message}`);
  const problems = strict ? [...broken, ...unknown] : broken;
  // What is sent is answered with these warnings by the server.
  if (dryRun && !strict) for (const text of unknown) note(`berth: warning: ${manifest.origin}: ${text}`);
  if (problems.length > 0) throw new UsageError(`${manifest.origin}: ${problems.join("; ")}`);
}

type CheckDeps = Pick<ApplyDeps, "dryRun" | "strict" | "note">;

/** Looks only at the file: no server is asked. */
export const validateManifest = (manifest: Manifest, deps: Pick<ApplyDeps, "nouns" | "note">): Promise<Change> =>
  settle(manifest, deps, async (noun) => {
    checkBody(noun, manifest, { ...deps, dryRun: true, strict: true });
    return "valid";
  });

/** Flat kinds have no metadata; in a manifest it only says what they belong to. */
function bodyOf(noun: Noun, { body }: Manifest): Record<string, unknown> {
  if (!noun.kind?.flat) return body;
  const { metadata: _metadata, ...members } = body;
  return members;
}

/** Where a manifest says what it is called: in metadata, or, for flat kinds, at the top. */
function ownName(noun: Noun, { body }: Manifest): string {
  const paths = ["metadata.name", ...(noun.kind?.flat ? [noun.kind.flat.name] : []), "name"];
  const found = paths.map((path) => memberAt(body, path)).find((value) => typeof value === "string");
  return typeof found === "string" ? found : "";
}

/**
 * The containers are named in metadata by their path parameter (`vpcName`), and the outermost also as `resourceName`.
 */
function paramsOf(operation: Operation, noun: Noun, manifest: Manifest): Record<string, string> {
  const item = noun.verbs.get("get") ?? noun.verbs.get("update") ?? noun.verbs.get("delete");
  const own = item?.params.at(-1);
  return Object.fromEntries(
    operation.params.map((param, index) => {
      if (param === own) return [param, ownName(noun, manifest)];
      const paths = [`metadata.${param}`, param, ...(index === 0 ? ["metadata.resourceName", "resourceName"] : [])];
      const value = paths.map((path) => memberAt(manifest.body, path)).find((found) => typeof found === "string");
      if (typeof value !== "string") {
        throw new UsageError(`${manifest.origin} does not say what it belongs to.`, `add metadata.${param}`);
      }
      return [param, value];
    }),
  );
}
