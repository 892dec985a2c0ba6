/** Makes the storage of a volume when it is first needed: empty, with the files of its template, or as a copy. */

import { PlatformError } from "../../contract/errors.ts";
import { removeTree } from "../../lib/remove-tree.ts";
import { need } from "../../node/capabilities/need.ts";
import type { CopySource } from "../../node/capabilities/volume-copies.ts";
import type { Volume } from "../../node/capabilities/volumes.ts";
import type { Resource } from "../../store/resources/resource.ts";
import type { Deps } from "../port.ts";
import { unpack } from "../volume-template/uploads.ts";

const contentOf = ({ state }: Resource): string | null => (typeof state.content === "string" ? state.content : null);

const sourceOf = ({ state }: Resource): CopySource | null => (state as { copyOf?: CopySource }).copyOf ?? null;

/** Whether the volume has storage, or its first files are decided. */
export const beginsWithFiles = (volume: Resource): boolean =>
  volume.state.sized !== undefined || contentOf(volume) !== null || sourceOf(volume) !== null;

export const neededByVolume = (volume: Resource): string[] => {
  const content = contentOf(volume);
  return content === null ? [] : [content];
};

export async function makeStorage(volume: Resource, deps: Deps): Promise<void> {
  const volumes = await need(deps.driver, "volumes");
  const spec = { id: volume.uid, sizeMb: volume.spec.size as number };
  const [content, source] = [contentOf(volume), sourceOf(volume)];
  if (source !== null) {
    await noteStorage(volume, await (await need(deps.driver, "volumeCopies")).restore(volume.uid, source), deps);
    return;
  }
  if (content === null || (await volumes.observe(volume.uid)) !== null) {
    await noteStorage(volume, await volumes.create(spec), deps);
    return;
  }
  const folder = await unpack(content, deps);
  if (!folder)
    throw new PlatformError(
      "unprocessable",
      `The files that volume '${volume.name}' starts with are not on this server.`,
    );
  try {
    await noteStorage(volume, await volumes.create({ ...spec, from: folder.path }), deps);
  } finally {
    await removeTree(folder.path);
  }
}

/** Records how much is used, and whether the machine enforces the size, which was decided when the storage was made. */
export async function noteStorage(
  { workspace, uid }: Pick<Resource, "workspace" | "uid">,
  { sized, usedBytes }: Pick<Volume, "sized" | "usedBytes">,
  { store }: Pick<Deps, "store">,
): Promise<void> {
  await store.resources.update(workspace, uid, ({ state }) => {
    const used = usedBytes ?? state.usedBytes;
    return state.sized === sized && state.usedBytes === used ? null : { state: { ...state, sized, usedBytes: used } };
  });
}
