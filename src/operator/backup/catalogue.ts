/** The backups of a repository: their manifests, newest last. */
import { z } from "zod";
import type { Config } from "../../config.ts";
import { PlatformError } from "../../contract/errors.ts";
import { fingerprintOf } from "../../lib/sealed-box.ts";
import { UsageError } from "../../lib/usage-error.ts";
import { checked } from "./part.ts";
import { openPlace } from "./repository/open-place.ts";
import type { Place } from "./repository/place.ts";
import { damaged, keysIn, Repository } from "./repository/repository.ts";

const manifest = z.object({
  id: z.string().min(1),
  createdAt: z.string(),
  version: z.string(),
  /** Rows of the database, as `berth backup FILE` writes them. */
  database: z.object({ chunks: z.array(z.string()), bytes: z.int().min(0) }),
  /** Of the database and all files, unpacked; absent in backups of older versions and of their nodes. */
  bytes: z.int().min(0).optional(),
  nodes: z.array(z.object({ id: z.string(), name: z.string() })).min(1),
});
export type Manifest = z.output<typeof manifest>;

const nameOf = (id: string): string => `backups/${id}`;

export const newBackupId = (nowMs: number, word: string): string =>
  `${new Date(nowMs).toISOString().replace(/[-:]|\.\d{3}/g, "")}-${word}`;

/** With this the backup is there. */
export const writeManifest = (repository: Repository, made: Manifest): Promise<void> =>
  repository.writeNote(nameOf(made.id), made);

/** Ids, oldest first. */
export const backupIds = (repository: Repository): Promise<string[]> => repository.listNotes("backups");

export async function readManifest(repository: Repository, id: string): Promise<Manifest> {
  const note = await repository.readNote(nameOf(id));
  if (note === null) throw new PlatformError("not_found", `There is no backup ${id} in ${repository.place.shown}.`);
  const found = checked(manifest, note);
  if (found.id !== id) throw damaged("a backup has the name of another");
  return found;
}

/** The backup that was asked for, or the newest. */
export async function chosenManifest(repository: Repository, id: string | undefined): Promise<Manifest> {
  const chosen = id ?? (await backupIds(repository)).at(-1);
  if (chosen !== undefined) return readManifest(repository, chosen);
  throw new PlatformError("not_found", `There is no whole backup in ${repository.place.shown}.`);
}

export async function removeBackup(repository: Repository, id: string): Promise<void> {
  await repository.removeNote(nameOf(id));
  for (const node of await repository.listNotes(`parts/${id}`)) await repository.removeNote(`parts/${id}/${node}`);
}

/** The place that the command names, or that of the settings. */
export function placeOf(config: Config, given: string | undefined): Place {
  const target = given ?? config.backup_target;
  if (target === undefined)
    throw new UsageError("It is not said where the backups are.", "name a folder or s3://BUCKET/PREFIX");
  return openPlace(target, {
    endpoint: config.backup_s3_endpoint,
    region: config.backup_s3_region,
    accessKeyId: config.backup_s3_key_id,
    secretAccessKey: config.backup_s3_secret,
    sessionToken: config.backup_s3_token,
  });
}

/** The repository of one of these keys, to read from. */
export async function repositoryToRead(place: Place, keys: readonly Buffer[], keyPlace: string): Promise<Repository> {
  const there = await keysIn(place);
  if (there.length === 0) throw new PlatformError("not_found", `There are no backups in ${place.shown}.`);
  const key = keys.find((one) => there.includes(fingerprintOf(one)));
  if (key) return new Repository(place, key);
  const [present] = keys;
  throw new PlatformError(
    "conflict",
    `The backups in ${place.shown} are sealed with the key ${there.join(" or ")}, ${present ? `but ${keyPlace} is ${fingerprintOf(present)}` : `and there is no key here: copy that secret.key to ${keyPlace}, or set BERTH_SECRET_KEY as it was`}.`,
  );
}
