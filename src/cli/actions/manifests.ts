/** apply, create and delete of what files describe. */

import { type Invocation, texts } from "../command.ts";
import { type Manifest, readManifests } from "../manifest.ts";
import { findNoun, type Noun } from "../nouns.ts";
import { type ApplyDeps, applyManifest, deleteManifest } from "./apply.ts";
import { connect, variablesOf } from "./call-input.ts";
import { type Change, finishChanges, reportChange } from "./changes.ts";

export const applyFiles = (nouns: readonly Noun[], call: Invocation): Promise<number | undefined> =>
  forEachManifest(nouns, call, { createOnly: false }, applyManifest);

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
  const manifests = await readManifests(texts(call.options.file), variablesOf(call), call.context);
  for (const { kind } of manifests) findNoun(nouns, kind); // a word nobody knows is told before anything is done
  const { note } = call.context;
  const deps = { nouns, client: connect(call), dryRun: call.options.dryRun === true, createOnly, note };
  const changes: Change[] = [];
  for (const manifest of reverse ? manifests.reverse() : manifests)
    changes.push(reportChange(await work(manifest, deps), call));
  return finishChanges(changes, call);
}
