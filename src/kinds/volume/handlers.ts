/** Copies of volumes: clone, restore to a new volume, export and import. */
import { rm } from "node:fs/promises";
import { notFound, PlatformError } from "../../contract/errors.ts";
import { randomWord } from "../../lib/ids.ts";
import { removeTree } from "../../lib/remove-tree.ts";
import { need } from "../../node/capabilities/need.ts";
import type { CopySource } from "../../node/capabilities/volume-copies.ts";
import { ofKind, type Resource } from "../../store/resources/resource.ts";
import { find } from "../place.ts";
import { type Call, type Implementation, implement, implementBytes, type Platform } from "../port.ts";
import { presentOne } from "../present.ts";
import { phaseOf } from "../snapshot/phase.ts";
import { volumeSnapshot } from "../volume-snapshot/kind.ts";
import { volumeBehaviour } from "./behaviour.ts";
import { VOLUME_SIZE_DEFAULT_MB, type Volume, volume as volumeKind } from "./kind.ts";
import { volumeClone, volumeExport, volumeImport, volumeRestore } from "./operations.ts";
import { beginsWithFiles, makeStorage, noteStorage } from "./storage.ts";

const MB = 1024 * 1024;
/** Entries of an imported archive. */
const ENTRIES_MAX = 500_000;
/** The headers and the padding of an archive may take as much as its files, and some more. */
const archiveBytesMax = (sizeMb: number): number => (2 * sizeMb + 64) * MB;

const clone = implement(volumeClone, async (call, deps) => {
  const source = await volumeOf(call, deps);
  await need(deps.here.driver, "volumeCopies");
  await makeStorage(source, deps.here);
  return copied(source, call.body.targetName, { volume: source.uid }, call, deps);
});

const restore = implement(volumeRestore, async (call, deps) => {
  const source = await volumeOf(call, deps);
  const copy = await readySnapshot(source, call.body.snapshotId, deps);
  return copied(source, call.body.targetName, { copy }, call, deps);
});

const exporting = implementBytes(volumeExport, async (call, deps) => {
  const source = await volumeOf(call, deps);
  const copies = await need(deps.here.driver, "volumeCopies");
  const { snapshotId } = call.query;
  const copy = snapshotId === undefined ? `export_${randomWord(20)}` : await readySnapshot(source, snapshotId, deps);
  if (snapshotId === undefined) {
    await makeStorage(source, deps.here);
    await copies.take(source.uid, copy);
  }
  const tar = await copies.pack(copy);
  if (snapshotId === undefined)
    tar.once("close", () => {
      copies.remove(copy).catch((error: unknown) => deps.log.warn({ err: error, copy }, "a copy could not be removed"));
    });
  call.setHeader("content-disposition", `attachment; filename="${source.name}.tar"`);
  return tar;
});

const importing = implement(volumeImport, async (call, deps) => {
  const target = await emptyVolume(call, deps);
  const { here } = deps;
  if (!call.stream) throw new PlatformError("bad_request", "The body must be the archive.");
  const sizeMb = target.spec.size ?? VOLUME_SIZE_DEFAULT_MB;
  const { path } = await here.blobs.receive(call.stream, archiveBytesMax(sizeMb));
  const from = await here.blobs.makeWorkFolder();
  try {
    // Whatever an export sends, an import takes.
    const limits = { entriesMax: ENTRIES_MAX, bytesMax: sizeMb * MB, links: true };
    await (await need(here.driver, "unpacking")).unpack(path, from, limits);
    const made = await (await need(here.driver, "volumeCopies")).fill({ id: target.uid, sizeMb, from });
    await noteStorage(target, made, here);
  } finally {
    await removeTree(from);
    await rm(path, { force: true });
  }
  return shown(target, call, deps);
});

const nodeOfVolume: NonNullable<Implementation["node"]> = async ({ workspace, params }, { store }) => {
  const scope = { workspace, kind: volumeKind.name, parent: "" };
  return (await store.resources.get(scope, params.volumeName ?? ""))?.node ?? null;
};

export const volumeHandlers: readonly Implementation[] = [
  { ...clone, node: nodeOfVolume },
  { ...restore, node: nodeOfVolume },
  { ...exporting, node: nodeOfVolume },
  // A refusal comes before the archive is read.
  { ...importing, node: nodeOfVolume, subject: async (call, deps) => void (await emptyVolume(call, deps)) },
];

type AnyCall = Call<Record<string, unknown>, unknown>;

async function volumeOf(call: AnyCall, deps: Platform): Promise<Volume> {
  const { resource } = await find(volumeKind, call, deps);
  if (resource.retired || resource.deletedAt !== null) throw notFound(`volume '${resource.name}'`);
  return resource;
}

async function emptyVolume(call: AnyCall, deps: Platform): Promise<Volume> {
  const found = await volumeOf(call, deps);
  await need(deps.here.driver, "volumeCopies");
  if (!beginsWithFiles(found)) return found;
  throw new PlatformError("conflict", `volume '${found.name}' has files already. Import into a new volume.`);
}

async function readySnapshot(source: Volume, id: string, { store, here }: Platform): Promise<string> {
  await need(here.driver, "volumeCopies");
  const scope = { workspace: source.workspace, kind: volumeSnapshot.name, parent: source.uid };
  const found = await store.resources.get(scope, id);
  if (!found) throw notFound(`snapshot '${id}' of volume '${source.name}'`);
  if (phaseOf(found) === "ready") return found.name;
  throw new PlatformError("conflict", `snapshot '${id}' is ${phaseOf(found)} and cannot be used.`);
}

/** The record says where its files come from, so that a server that is killed meanwhile leaves no empty volume. */
async function copied(source: Volume, name: string, copyOf: CopySource, call: AnyCall, deps: Platform) {
  const actor = call.caller.displayName;
  const { template: _template, snapshots: _snapshots, ...spec } = structuredClone(source.spec);
  const { outcome, resource } = await deps.store.resources.create({
    ...{ workspace: source.workspace, kind: volumeKind.name, parent: "", uid: call.uid(), name },
    metadata: source.metadata.labels ? { labels: source.metadata.labels } : {},
    ...{ spec, secrets: {}, state: { copyOf }, status: volumeKind.initialStatus ?? null },
    events: [{ type: "created", message: `Copied from volume '${source.name}' by ${actor}.` }],
    ...{ revision: false, actor, settled: true, node: source.node },
  });
  if (outcome === "exists" && resource.uid !== call.uid())
    throw new PlatformError("already_exists", `volume '${name}' exists already. Choose another name.`);
  try {
    await makeStorage(ofKind(volumeKind, resource), deps.here);
  } catch (error) {
    await deps.store.resources.delete(resource.workspace, resource.uid);
    throw error;
  }
  return shown(resource, call, deps);
}

async function shown({ workspace, uid, name }: Resource, { caller }: AnyCall, deps: Platform) {
  const now = await deps.store.resources.getByUid(workspace, uid);
  if (!now) throw notFound(`volume '${name}'`);
  return presentOne(volumeBehaviour, now, { parents: [], caller }, deps);
}
