/** Applies manifests: replaces existing resources and creates missing ones. */
import { isDeepStrictEqual } from "node:util";
import { ApiError } from "../../client/api-error.ts";
import type { Client } from "../../client/client.ts";
import { canRehearse } from "../../contract/dry-run.ts";
import { unknownMembers } from "../../contract/members/unknown-members.ts";
import type { Operation } from "../../contract/operation.ts";
import { linksOf, missingTarget } from "../../contract/references.ts";
import { UsageError } from "../../lib/usage-error.ts";
import { tellCallbackSecrets } from "../callback-secrets.ts";
import { isObject, memberAt } from "../json-path.ts";
import type { Manifest } from "../manifest.ts";
import { findNoun, type Noun, operationOf } from "../nouns.ts";
import { type Change, type Outcome, wouldBe } from "./changes.ts";

export interface ApplyDeps {
  nouns: readonly Noun[];
  client: Client;
  dryRun: boolean;
  /** Resources that this dry run would have created so far, as `kind/name`: later documents may need them. */
  planned: Set<string>;
  /** An existing resource is an error. */
  createOnly: boolean;
  /** An unknown member is an error. */
  strict: boolean;
  /** Shows values that cannot be read again later. */
  note(line: string): void;
}

export function applyManifest(manifest: Manifest, deps: ApplyDeps): Promise<Change> {
  return settle(manifest, deps, async (noun, name) => {
    checkBody(noun, manifest, deps);
    const outcome = deps.createOnly ? await create(noun, manifest, deps) : await applied(noun, name, manifest, deps);
    if (deps.dryRun && outcome === "created") deps.planned.add(`${noun.kind?.name ?? noun.name}/${name}`);
    return deps.dryRun ? wouldBe(outcome) : outcome;
  });
}

/** Reads before it writes: replacing a missing resource would appear in the audit log as a failure. */
async function applied(noun: Noun, name: string, manifest: Manifest, deps: ApplyDeps): Promise<Outcome> {
  // Without a name there is nothing to replace: the platform generates one.
  if (name === "") return create(noun, manifest, deps);
  // A dry run cannot ask the server about the content of a container that does not exist yet.
  if (isWithinPlanned(noun, manifest, deps)) return "created";
  const before = await read(noun, manifest, deps);
  if (before === MISSED || isGone(before)) return create(noun, manifest, deps);
  const update = noun.verbs.get("update");
  if (!update) return createOrCompare(noun, manifest, before, deps);
  if (deps.dryRun && !canRehearse(update)) return contains(before, bodyOf(noun, manifest)) ? "unchanged" : "configured";
  const input = inputOf(update, noun, manifest, deps);
  const changed = await unlessStatus([404, 405], sent(deps.client.call(update, input), noun, manifest, deps));
  if (changed === NEEDS_PLANNED) return "configured";
  if (changed === MISSED) return create(noun, manifest, deps);
  if (!deps.dryRun) tellCallbackSecrets(changed, deps.note);
  return isSame(before, changed) ? "unchanged" : "configured";
}

/** A resource that has ended, or is about to, frees its name for a new one. */
const isGone = (before: unknown): boolean => ["DELETING", "TERMINATED"].includes(String(memberAt(before, "status")));

export function deleteManifest(manifest: Manifest, deps: ApplyDeps): Promise<Change> {
  return settle(manifest, deps, async (noun, name) => {
    const operation = operationOf(noun, "delete");
    if (deps.dryRun && !canRehearse(operation))
      return name !== "" && isThere(await read(noun, manifest, deps)) ? "would be deleted" : "not there";
    const { params, query } = inputOf(operation, noun, manifest, deps);
    const gone = await unlessStatus([404], deps.client.call(operation, { params, query }));
    if (gone === MISSED) return "not there";
    return deps.dryRun ? "would be deleted" : "deleted";
  });
}

/** A resource that fails does not stop the others from being applied. */
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

async function create(noun: Noun, manifest: Manifest, deps: ApplyDeps): Promise<Outcome> {
  const operation = operationOf(noun, "create");
  const input = inputOf(operation, noun, manifest, deps);
  if (!deps.dryRun) tellCallbackSecrets(await deps.client.call(operation, input), deps.note);
  else if (canRehearse(operation)) await sent(deps.client.call(operation, input), noun, manifest, deps);
  return "created";
}

/** A kind that cannot be changed may be applied again if the manifest is unchanged. */
async function createOrCompare(noun: Noun, manifest: Manifest, before: unknown, deps: ApplyDeps): Promise<Outcome> {
  if (isThere(before) && contains(memberAt(before, "spec"), memberAt(manifest.body, "spec"))) return "unchanged";
  return create(noun, manifest, deps);
}

function isWithinPlanned(noun: Noun, manifest: Manifest, { planned }: ApplyDeps): boolean {
  const params = containersOf(noun, manifest);
  for (let above = noun.kind?.within; above; above = above.within)
    if (planned.has(`${above.name}/${params[above.param]}`)) return true;
  return false;
}

/** Ignores a dry run's refusal that is only due to a resource the same run would have created. */
async function sent<T>(call: Promise<T>, noun: Noun, { body }: Manifest, deps: ApplyDeps): Promise<T | symbol> {
  try {
    return await call;
  } catch (error) {
    const needed = linksOf(body, noun.kind?.references ?? []).filter((to) => deps.planned.has(`${to.kind}/${to.name}`));
    const missing = needed.find((link) => (error as Error).message.includes(missingTarget(link)));
    if (!missing) throw error;
    return NEEDS_PLANNED;
  }
}

const inputOf = (operation: Operation, noun: Noun, manifest: Manifest, { dryRun }: ApplyDeps) => ({
  params: paramsOf(operation, noun, manifest),
  body: bodyOf(noun, manifest),
  query: dryRun && canRehearse(operation) ? { dryRun: true } : {},
});

const contains = (whole: unknown, part: unknown): boolean =>
  isObject(part) && isObject(whole)
    ? Object.entries(part).every(([key, value]) => contains(whole[key], value))
    : part === undefined || isDeepStrictEqual(whole, part);

/** MISSED when the resource does not exist, UNREADABLE when these credentials may not read it. */
async function read(noun: Noun, manifest: Manifest, { client }: ApplyDeps): Promise<unknown> {
  const operation = noun.verbs.get("get");
  if (!operation) return UNREADABLE;
  const found = client.call(operation, { params: paramsOf(operation, noun, manifest) });
  return unlessStatus([403], unlessStatus([404], found), UNREADABLE);
}

const isThere = (found: unknown): boolean => found !== MISSED && found !== UNREADABLE;

/**
 * Whether a replacement changed nothing that the manifest sets. A secret is masked in both answers, but a new one
 * leaves an event.
 */
const isSame = (before: unknown, after: unknown): boolean =>
  ["spec", "metadata.labels", "metadata.displayName", "events"].every((path) =>
    isDeepStrictEqual(memberAt(before, path), memberAt(after, path)),
  ) && memberAt(after, "spec") !== undefined;

const MISSED = Symbol("missed");
const NEEDS_PLANNED = Symbol("needs what the same run would create");
const UNREADABLE = Symbol("unreadable");

const unlessStatus = <T>(
  statuses: readonly number[],
  call: Promise<T>,
  instead: symbol = MISSED,
): Promise<T | symbol> =>
  call.catch((error: unknown) => {
    if (error instanceof ApiError && statuses.includes(error.status)) return instead;
    throw error;
  });

/** Checks the body before anything is sent; the server checks what the schema cannot express. */
function checkBody(noun: Noun, manifest: Manifest, { dryRun, strict, note }: CheckDeps): void {
  const operation = noun.verbs.get("create") ?? noun.verbs.get("update");
  if (!operation?.body) return;
  const body = bodyOf(noun, manifest);
  const unknown = unknownMembers(operation, body);
  const result = operation.body.safeParse(body);
  const broken = (result.error?.issues ?? []).map((issue) => `${issue.path.join(".") || "it"}: ${issue.message}`);
  const problems = strict ? [...broken, ...unknown] : broken;
  // For a request that is sent, the server returns these warnings itself.
  if (dryRun && !strict && !canRehearse(operation))
    for (const text of unknown) note(`berth: warning: ${manifest.origin}: ${text}`);
  if (problems.length > 0) throw new UsageError(`${manifest.origin}: ${problems.join("; ")}`);
}

type CheckDeps = Pick<ApplyDeps, "dryRun" | "strict" | "note">;

/** Checks only the file, without a server. */
export const validateManifest = (manifest: Manifest, deps: Pick<ApplyDeps, "nouns" | "note">): Promise<Change> =>
  settle(manifest, deps, async (noun) => {
    checkBody(noun, manifest, { ...deps, dryRun: true, strict: true });
    containersOf(noun, manifest);
    return "valid";
  });

/** Flat kinds have no metadata; in their manifests it only names the containers. */
function bodyOf(noun: Noun, { body }: Manifest): Record<string, unknown> {
  if (!noun.kind?.flat) return body;
  const { metadata: _metadata, ...members } = body;
  return members;
}

/** The name in a manifest: in metadata or, for flat kinds, at the top. */
function ownName(noun: Noun, { body }: Manifest): string {
  const paths = ["metadata.name", ...(noun.kind?.flat ? [noun.kind.flat.name] : []), "name"];
  const found = paths.map((path) => memberAt(body, path)).find((value) => typeof value === "string");
  return typeof found === "string" ? found : "";
}

function containersOf(noun: Noun, manifest: Manifest): Record<string, string> {
  const operation = noun.verbs.get("create") ?? noun.verbs.get("update");
  return operation ? paramsOf(operation, noun, manifest) : {};
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
