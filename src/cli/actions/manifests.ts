/** apply, create and delete for resources described in files. */

import { type Invocation, texts } from "../command.ts";
import type { Manifest } from "../manifest.ts";
import { findNoun, type Noun } from "../nouns.ts";
import { type ApplyDeps, applyManifest, deleteManifest, validateManifest } from "./apply.ts";
import { connect, variablesOf } from "./call-input.ts";
import { type Change, finishChanges, reportChange } from "./changes.ts";

export const applyFiles = (nouns: readonly Noun[], call: Invocation): Promise<number | undefined> =>
  call.options.validate === true
    ? validateFiles(nouns, call)
    : forEachManifest(nouns, call, { createOnly: false }, applyManifest);

export const createFiles = (nouns: readonly Noun[], call: Invocation): Promise<number | undefined> =>
  forEachManifest(nouns, call, { createOnly: true }, applyManifest);

/** In reverse order, so that containers are deleted after their content. */
export const deleteFiles = (nouns: readonly Noun[], call: Invocation): Promise<number | undefined> =>
  forEachManifest(nouns, call, { createOnly: false, reverse: true }, deleteManifest);

async function forEachManifest(
  nouns: readonly Noun[],
  call: Invocation,
  { createOnly, reverse = false }: { createOnly: boolean; reverse?: boolean },
  work: (manifest: Manifest, deps: ApplyDeps) => Promise<Change>,
): Promise<number | undefined> {
  const manifests = await manifestsOf(nouns, call);
  const { note } = call.context;
  const [dryRun, strict] = [call.options.dryRun === true, call.options.strict === true];
  const wrong = strict && !reverse ? await wrongOnes(manifests, { nouns, note }) : [];
  if (wrong.length > 0) {
    for (const change of wrong) reportChange(change, call);
    note("berth: nothing was applied");
    return finishChanges(wrong, call);
  }
  const deps = { nouns, client: connect(call), dryRun, planned: new Set<string>(), strict, createOnly, note };
  const changes: Change[] = [];
  for (const manifest of reverse ? manifests.reverse() : manifests)
    changes.push(reportChange(await work(manifest, deps), call));
  return finishChanges(changes, call);
}

/** With --strict every document is checked before the first is sent. */
async function wrongOnes(manifests: readonly Manifest[], deps: Pick<ApplyDeps, "nouns" | "note">): Promise<Change[]> {
  const changes = await Promise.all(manifests.map((manifest) => validateManifest(manifest, deps)));
  return changes.filter(({ outcome }) => outcome === "failed");
}

async function validateFiles(nouns: readonly Noun[], call: Invocation): Promise<number | undefined> {
  const { note } = call.context;
  const changes: Change[] = [];
  for (const manifest of await manifestsOf(nouns, call))
    changes.push(reportChange(await validateManifest(manifest, { nouns, note }), call));
  return finishChanges(changes, call);
}

/** Reads the manifests and refuses unknown kinds before anything is done. */
async function manifestsOf(nouns: readonly Noun[], call: Invocation): Promise<Manifest[]> {
  const { readManifests } = await import("../manifest.ts"); // loads the YAML library, which most commands do not need
  const manifests = await readManifests(texts(call.options.file), variablesOf(call), call.context);
  for (const { kind } of manifests) findNoun(nouns, kind);
  return manifests;
}
