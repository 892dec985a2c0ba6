/**
 * Turns an uploaded archive into runnable code: unpacks it, builds it in a workload of its own, and stores the result
 * on a drive. A record under the hash of the build's input refers to the drive, so the same source of one workspace is
 * built once.
 */
import { createHash } from "node:crypto";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { PlatformError } from "../../contract/errors.ts";
import { randomWord } from "../../lib/ids.ts";
import { removeTree } from "../../lib/remove-tree.ts";
import { HOUR_MS } from "../../lib/time/clock.ts";
import { need } from "../../node/capabilities/need.ts";
import type { Resource } from "../../store/resources/resource.ts";
import type { Store } from "../../store/store.ts";
import type { Deps, ReconcileContext } from "../port.ts";
import { PROJECT_LIMITS } from "../uploads.ts";
import { type Bundle, stateOf } from "./deploy-state.ts";
import { beginImageBuild, hasDockerfile } from "./image-bundle.ts";
import { logTag } from "./log-tag.ts";
import { BUILD_ENV_FILE, CODE_PATH, PYTHON_PACKAGES, recipeFor } from "./start-command.ts";
import { trustOf } from "./trust.ts";

/** Limits of a build. Compilers and package managers need this much whatever the workload's own limits are. */
const BUILD_LIMITS = { memoryMb: 2048, cpus: 2 };
/** Part of the hash. Increase it when bundles are made differently, so that old ones are not reused. */
const LAYOUT = 2;
/** Age before an unused bundle is removed, so that one which is about to be used is kept. */
const UNUSED_MS = HOUR_MS;
const PAGE = 500;

export const builderUid = ({ uid }: Resource, revision: string): string => `${uid}-build-${revision}`;

export const baseImage = ({ settings }: Pick<Deps, "settings">): string => `${settings.brand}/base-image:latest`;

/** Puts programs and packages of the code before those of the image. */
export const codeEnv: Record<string, string> = {
  PATH: `${CODE_PATH}/node_modules/.bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin`,
  PYTHONPATH: `${CODE_PATH}/${PYTHON_PACKAGES}`,
};

const noteKey = ({ workspace }: Resource, source: string): string =>
  createHash("sha256").update(`${LAYOUT}/${workspace}/${source}`).digest("hex");

const shell = (line: string): string[] => ["/bin/sh", "-c", line];

/** The bundle's start command with arguments appended. */
export const withArguments = ({ argv }: Bundle, args: readonly string[]): string[] =>
  args.length === 0 ? argv : [...shell(`${argv.at(-1)} "$@"`), "task", ...args];

export type Begun = { bundle: Bundle } | { building: Bundle };

/** Returns the bundle when there is nothing to build or the same input was built before. */
export async function beginBuild(
  resource: Resource,
  revision: string,
  source: string,
  { deps, signal }: ReconcileContext,
): Promise<Begun> {
  const { blobs, driver, settings } = deps;
  const known = (await blobs.readNote(noteKey(resource, source))) as Bundle | null;
  if (known) return { bundle: known };
  const id = builderUid(resource, revision);
  const failure = deps.builder.takeFailure(id);
  if (failure !== null) throw failure;
  const archive = await blobs.find(source);
  if (!archive) throw new PlatformError("bad_request", "The archive is no longer there. Send it again.");
  const folder = await blobs.makeWorkFolder();
  let isHandedOn = false;
  try {
    await (await need(driver, "unpacking")).unpack(archive, folder, PROJECT_LIMITS, { signal });
    if (await hasDockerfile(folder)) {
      const keep = (bundle: Bundle): Promise<Bundle> => keepBundle(resource, source, bundle, deps);
      await beginImageBuild(resource, { id, revision, folder }, deps, keep);
      isHandedOn = true;
      return { building: { argv: [] } };
    }
    const { build, start, stdio, buildEnv } = await recipeFor(folder, settings.brand);
    const drive = `bundle-${randomWord(20)}`;
    const bundle: Bundle = { drive, argv: shell(start), ...(stdio ? { stdio } : {}) };
    await rm(join(folder, BUILD_ENV_FILE), { force: true });
    await (await need(driver, "drives")).create(drive, { from: folder });
    if (build === null) return { bundle: await keepBundle(resource, source, bundle, deps) };
    const trust = await trustOf(resource, deps);
    await driver.create(
      {
        uid: id,
        name: "build",
        image: baseImage(deps),
        env: {
          ...codeEnv,
          HOME: "/tmp",
          CI: "true",
          npm_config_cache: "/tmp/npm",
          npm_config_update_notifier: "false",
          ...trust.env,
          ...settings.buildEnv,
          ...buildEnv,
        },
        workDir: CODE_PATH,
        limits: BUILD_LIMITS,
        mounts: [{ source: { drive }, path: CODE_PATH }, ...trust.mounts],
        network: "outbound",
        log: logTag(resource, "build", { revision }),
        exec: { argv: shell(build) },
      },
      { signal },
    );
    return { building: bundle };
  } finally {
    if (!isHandedOn) await removeTree(folder);
  }
}

export async function keepBundle(resource: Resource, source: string, bundle: Bundle, { blobs }: Deps): Promise<Bundle> {
  await blobs.writeNote(noteKey(resource, source), bundle);
  return bundle;
}

/** The drive or the image of a bundle; none while an image is built. */
const filesOf = (bundle: Bundle | undefined): string[] =>
  [bundle?.drive, bundle?.image].filter((name) => name !== undefined);

/** The drives, images and archives that a workload's revisions need. */
export function neededByCode(resource: Resource): string[] {
  return Object.values(stateOf(resource).revisions ?? {}).flatMap(({ bundle, building, source, failed }) => [
    ...[bundle, building].flatMap((one) => filesOf(one)),
    // A finished bundle no longer needs its archive.
    ...(source && !bundle && failed === undefined ? [source] : []),
  ]);
}

/** The archives of all revisions that a workload keeps: another node builds a revision again from its archive. */
export const sourcesOfCode = (resource: Resource): string[] =>
  Object.values(stateOf(resource).revisions ?? {}).flatMap(({ source }) => (source ? [source] : []));

/** Removes archives that no resource names from where servers share them. */
export async function sweepSharedBlobs(
  needs: Readonly<Record<string, (resource: Resource) => string[]>>,
  { store, clock, sharedBlobs = store.blobs }: Pick<Deps, "store" | "clock" | "sharedBlobs">,
  signal: AbortSignal,
): Promise<void> {
  // The database may have some from before the operator named a bucket.
  for (const shared of new Set([store.blobs, sharedBlobs])) {
    const old = (await shared.list()).filter(({ writtenMs }) => writtenMs + UNUSED_MS < clock.now());
    if (old.length === 0) continue;
    const used = await neededNow(needs, store);
    for (const { digest, writtenMs } of old) {
      signal.throwIfAborted();
      if (!used.has(digest)) await shared.remove(digest, writtenMs);
    }
  }
}

async function neededNow(
  needs: Readonly<Record<string, (resource: Resource) => string[]>>,
  store: Store,
): Promise<Set<string>> {
  const used = new Set<string>();
  for (const [kind, neededBy] of Object.entries(needs)) {
    for (let after = ""; ; ) {
      const page = await store.resources.listAcrossWorkspaces(kind, after, PAGE);
      for (const needed of page.flatMap(neededBy)) used.add(needed);
      after = page.at(-1)?.uid ?? "";
      if (page.length < PAGE) break;
    }
  }
  for (const digest of await store.pushedImages.listDigests()) used.add(digest.slice("sha256:".length));
  return used;
}

/** Removes bundles and archives that no resource needs. */
export async function sweepBundles(
  needs: Readonly<Record<string, (resource: Resource) => string[]>>,
  deps: Deps,
  signal: AbortSignal,
): Promise<void> {
  const { store, blobs, driver, clock, builder } = deps;
  const used = await neededNow(needs, store);
  const isOld = ({ writtenMs }: { writtenMs: number }): boolean => writtenMs + UNUSED_MS < clock.now();
  for (const { key } of (await blobs.listNotes()).filter(isOld)) {
    signal.throwIfAborted();
    const bundle = (await blobs.readNote(key)) as Bundle | null;
    if (!bundle || filesOf(bundle).some((name) => used.has(name))) continue;
    if (bundle.drive && builder.isHeld(bundle.drive)) continue; // a cache of a build that goes on
    await blobs.removeNote(key);
    if (bundle.drive) await (await driver.capability("drives"))?.destroy(bundle.drive);
    if (bundle.image) await (await driver.capability("images"))?.remove(bundle.image);
  }
  for (const { digest, writtenMs } of (await blobs.list()).filter(isOld))
    if (!used.has(digest)) await blobs.remove(digest, writtenMs);
}
