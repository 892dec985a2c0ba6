/** apply, create and delete of what files describe. */

import { type Invocation, texts } from "../command.ts";
import { type Manifest, readManifests } from "../manifest.ts";
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

/** In reverse, so that what contains goes after what is contained. */
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
  const deps = { nouns, client: connect(call), dryRun, strict, createOnly, note };
  const changes: Change[] = [];
  for (const manifest of reverse ? manifests.reverse() : manifests)
    changes.push(reportChange(await work(manifest, deps), call));
  return finishChanges(changes, call);
}

async function validateFiles(nouns: readonly Noun[], call: Invocation): Promise<number | undefined> {
  const { note } = call.context;
  const changes: Change[] = [];
  for (const manifest of await manifestsOf(nouns, call))
    changes.push(reportChange(await validateManifest(manifest, { nouns, note }), call));
  return finishChanges(changes, call);
}

/** A kind that nobody knows is told before anything is done. */
async function manifestsOf(nouns: readonly Noun[], call: Invocation): Promise<Manifest[]> {
  const manifests = await readManifests(texts(call.options.file), variablesOf(call), call.context);
  for (const { kind } of manifests) findNoun(nouns, kind);
  return manifests;
}
