/** Removes old backups, and chunks that no backup needs: also those that a killed backup left. */
import { backupIds, readManifest, removeBackup } from "./catalogue.ts";
import { readPart, unitsIn } from "./part.ts";
import { damaged, type Repository } from "./repository/repository.ts";

/** Removals under way at once. */
const AT_ONCE = 16;

/** The caller holds the lock. Returns how many backups were removed. */
export async function removeOld(repository: Repository, keep: number): Promise<number> {
  const ids = await backupIds(repository);
  const old = ids.slice(0, Math.max(0, ids.length - keep));
  const kept = ids.slice(old.length);
  // Read first: when a backup that stays cannot be read, it is not known what it needs, and nothing is removed.
  const needed = new Set<string>();
  for (const id of kept) for await (const name of chunksIn(repository, id)) needed.add(name);
  for (const id of old) await removeBackup(repository, id);
  for (const part of await repository.listNotes("parts"))
    if (!kept.some((id) => part.startsWith(`${id}/`))) await repository.removeNote(`parts/${part}`);
  const unneeded = [...(await repository.chunkNames())].filter((name) => !needed.has(name));
  for (let at = 0; at < unneeded.length; at += AT_ONCE)
    await Promise.all(unneeded.slice(at, at + AT_ONCE).map((name) => repository.removeChunk(name)));
  return old.length;
}

/** Every chunk that the backup needs. */
async function* chunksIn(repository: Repository, id: string): AsyncGenerator<string> {
  const { database, nodes } = await readManifest(repository, id);
  yield* database.chunks;
  for (const node of nodes) {
    const part = await readPart(repository, id, node.id);
    if (!part) throw damaged(`the files of node '${node.name}' are missing in ${id}`);
    yield* part.index.chunks;
    for await (const unit of unitsIn(repository, part)) yield* unit.tar.chunks;
  }
}
