/** The files of a new version are uploaded as an archive, which is stored as it is and unpacked into each volume. */

import { PlatformError } from "../../contract/errors.ts";
import { removeTree } from "../../lib/remove-tree.ts";
import { toIso } from "../../lib/time/clock.ts";
import type { Blob } from "../../node/blobs/blob-store.ts";
import { need } from "../../node/capabilities/need.ts";
import type { Deps, Uploads } from "../port.ts";
import { PROJECT_LIMITS, ticketOf } from "../uploads.ts";
import type { TemplateVersion } from "./kind.ts";
import { versionsOf } from "./versions.ts";

/** Versions of one template; each keeps its archive. */
const VERSIONS_MAX = 100;

export const templateUploads: Uploads = {
  nameOf({ query }, current) {
    if (typeof query.version === "string") return query.version;
    const versions = current ? versionsOf(current) : [];
    if (versions.length >= VERSIONS_MAX)
      throw new PlatformError("conflict", `A template has at most ${VERSIONS_MAX} versions. Delete one first.`);
    // A second request for an upload URL reuses the version whose archive was never sent.
    const awaited = current && ticketOf(current)?.revision;
    return awaited ?? String(Math.max(0, ...versions.map(({ name }) => Number(name) || 0)) + 1);
  },
  async take(archive, name, deps) {
    const uploadedAt = toIso(deps.clock.now());
    const looked = await look(archive, deps.here);
    const version: TemplateVersion =
      "contentSize" in looked
        ? { name, status: "READY", contentSize: looked.contentSize, uploadedAt, source: archive.digest }
        : { name, status: "FAILED", uploadedAt };
    return {
      change: (current) => ({
        state: { ...current.state, versions: [...versionsOf(current).filter((one) => one.name !== name), version] },
      }),
      ...("refusal" in looked ? { refusal: looked.refusal } : {}),
    };
  },
};

/** Unpacks the archive once to check it and to measure its size. */
async function look(archive: Blob, deps: Deps): Promise<{ contentSize: number } | { refusal: PlatformError }> {
  const folder = await unpack(archive.digest, deps).catch((error: unknown) => {
    if (error instanceof PlatformError && error.status < 500) return { refusal: error };
    throw error;
  });
  if (!folder) return { refusal: new PlatformError("bad_request", "The archive is no longer there. Send it again.") };
  if ("refusal" in folder) return folder;
  await removeTree(folder.path);
  return { contentSize: folder.sizeBytes };
}

/** Unpacks an archive into a folder that the caller removes; null when the archive is not on this machine. */
export async function unpack(
  digest: string,
  { blobs, driver }: Deps,
): Promise<{ path: string; sizeBytes: number } | null> {
  const archive = await blobs.find(digest);
  if (!archive) return null;
  const path = await blobs.makeWorkFolder();
  try {
    return { path, ...(await (await need(driver, "unpacking")).unpack(archive, path, PROJECT_LIMITS)) };
  } catch (error) {
    await removeTree(path);
    throw error;
  }
}
