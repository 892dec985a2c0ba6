/** Makes the storage of a volume when it is first needed: empty, with the files of its template, or as a copy. */

import { PlatformError } from "../../contract/errors.ts";
import { removeTree } from "../../lib/remove-tree.ts";
import { need } from "../../node/capabilities/need.ts";
import type { Volume as Storage } from "../../node/capabilities/volumes.ts";
import type { Resource } from "../../store/resources/resource.ts";
import type { Deps } from "../port.ts";
import { unpack } from "../volume-template/uploads.ts";
import { VOLUME_SIZE_DEFAULT_MB, type Volume } from "./kind.ts";

/** Whether the volume has storage, or its first files are decided. */
export const beginsWithFiles = ({ state }: Volume): boolean =>
  state.sized !== undefined || state.content !== undefined || state.copyOf !== undefined;

export const neededByVolume = ({ state: { content } }: Volume): string[] => (content === undefined ? [] : [content]);

export async function makeStorage(volume: Volume, deps: Deps): Promise<void> {
  const volumes = await need(deps.driver, "volumes");
  const spec = { id: volume.uid, sizeMb: volume.spec.size ?? VOLUME_SIZE_DEFAULT_MB };
  const { content, copyOf: source } = volume.state;
  if (source !== undefined) {
    await noteStorage(volume, await (await need(deps.driver, "volumeCopies")).restore(volume.uid, source), deps);
    return;
  }
  if (content === undefined || (await volumes.observe(volume.uid)) !== null) {
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
  { sized, usedBytes }: Pick<Storage, "sized" | "usedBytes">,
  { store }: Pick<Deps, "store">,
): Promise<void> {
  await store.resources.update(workspace, uid, ({ state }) => {
    const used = usedBytes ?? state.usedBytes;
    return state.sized === sized && state.usedBytes === used ? null : { state: { ...state, sized, usedBytes: used } };
  });
}
