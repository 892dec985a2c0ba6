/** Versions that a killed `berth upgrade` left half installed: the next start of a server removes them. */
import { lockFolder } from "../../store/database/data-lock.ts";
import { installation, removeUnfinished, UPGRADE_LOCK, unfinishedVersions } from "./versions.ts";

export async function removeUnfinishedVersions(given = installation()): Promise<void> {
  if (unfinishedVersions(given).length === 0) return;
  const lock = lockFolder(given.folder, UPGRADE_LOCK);
  if (!lock) return; // an upgrade is at work: the version is not left, but being installed
  try {
    await removeUnfinished(given);
  } finally {
    await lock.stop();
  }
}
