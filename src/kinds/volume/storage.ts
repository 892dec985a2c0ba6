/** Makes the storage of a volume when it is first attached, with the files of its template. */

import { PlatformError } from "../../contract/errors.ts";
import { removeTree } from "../../lib/remove-tree.ts";
import { need } from "../../node/capabilities/need.ts";
import type { Resource } from "../../store/resources/resource.ts";
import type { Deps } from "../port.ts";
import { unpack } from "../volume-template/uploads.ts";

const contentOf = ({ state }: Resource): string | null => (typeof state.content === "string" ? state.content : null);

export const neededByVolume = (volume: Resource): string[] => {
  const content = contentOf(volume);
  return content === null ? [] : [content];
};

export async function makeStorage(volume: Resource, deps: Deps): Promise<void> {
  const volumes = await need(deps.driver, "volumes");
  const spec = { id: volume.uid, sizeMb: volume.spec.size as number };
  const content = contentOf(volume);
  if (content === null || (await volumes.observe(volume.uid)) !== null) {
    await noteSize(volume, await volumes.create(spec), deps);
    return;
  }
  const folder = await unpack(content, deps);
  if (!folder)
    throw new PlatformError(
      "unprocessable",
      `The files that volume '${volume.name}' starts with are not on this server.`,
    );
  try {
    await noteSize(volume, await volumes.create({ ...spec, from: folder.path }), deps);
  } finally {
    await removeTree(folder.path);
  }
}

/** Records whether the machine enforces the size; that was decided when the storage was made. */
async function noteSize({ workspace, uid }: Resource, { sized }: { sized: boolean }, { store }: Deps): Promise<void> {
  await store.resources.update(workspace, uid, ({ state }) =>
    state.sized === sized ? null : { state: { ...state, sized } },
  );
}
