/**
 * `berth backup --files`: the database and the files of all nodes, into a repository. The database comes first, so that
 * whatever its records name had its files when they were read, unless its owner deleted it meanwhile. The manifest comes
 * last: a backup that ends before it, however it ends, leaves chunks for the next one and no backup.
 */
import { readSecretKeys, secretKeyPlace } from "../../auth/secret-key.ts";
import { type Config, driverDir } from "../../config.ts";
import { PlatformError } from "../../contract/errors.ts";
import { bytesText } from "../../lib/bytes-text.ts";
import { randomWord } from "../../lib/ids.ts";
import { fingerprintOf } from "../../lib/sealed-box.ts";
import { toIso } from "../../lib/time/clock.ts";
import { openDump } from "../../store/backup/backup.ts";
import { packageVersion } from "../version.ts";
import { backupIds, newBackupId, placeOf, writeManifest } from "./catalogue.ts";
import { type OtherNodes, openOtherNodes } from "./other-nodes.ts";
import { type Part, readNode, takePart } from "./part.ts";
import { removeOld } from "./prune.ts";
import { Repository, type Stored } from "./repository/repository.ts";

export interface EverythingCommand {
  config: Config;
  target: string | undefined;
  /** Backups that stay, with this one; older ones are removed. Undefined: all stay. */
  keep: number | undefined;
  /** Leaves out the files of nodes that are not heard of. */
  skipLost: boolean;
  tell: Teller;
}

export interface Teller {
  /** What is read now, and how far the work is. */
  progress(line: string): void;
  note(line: string): void;
}

/** Returns the lines to show to the operator. */
export async function backupEverything({ config, target, keep, skipLost, tell }: EverythingCommand): Promise<string[]> {
  refuseOtherDrivers(config);
  const place = placeOf(config, target);
  const key = keyOfData(config);
  const repository = new Repository(place, key);
  const counted = countedProgress(tell);
  await repository.prepare();
  const lock = await repository.lock();
  let others: OtherNodes | null = null;
  try {
    const id = newBackupId(Date.now(), randomWord(6).toLowerCase());
    const node = readNode(config.data);
    counted.unit("database");
    const database = await storeDatabase(config, repository, key, counted);
    others = await openOtherNodes({ config, backup: id, node: node.id, repository, skipLost });
    const own = await takePart({ repository, backup: id, dataDir: config.data, progress: counted });
    const parts = [own, ...(await others.parts((line) => tell.progress(line)))];
    const manifest = { id, createdAt: toIso(Date.now()), version: packageVersion(), database };
    const bytes = parts.reduce((sum, part) => sum + (part.bytes ?? Number.NaN), database.bytes);
    const size = Number.isNaN(bytes) ? {} : { bytes };
    await writeManifest(repository, { ...manifest, ...size, nodes: parts.map((part) => part.node) });
    const removed = keep === undefined ? 0 : await removeOld(repository, keep);
    const units = parts.reduce((sum, part) => sum + part.units, 0);
    return [
      `${id}: the database and ${units} folders of ${parts.length} node${parts.length === 1 ? "" : "s"}, ${bytesText(counted.readBytes)} read here, ${bytesText(counted.sentBytes)} sent to ${place.shown}`,
      ...parts.flatMap(leftOutLines),
      ...others.left.map((name) => `The files of node '${name}' are not in it: the node is lost.`),
      ...(keep === undefined ? [] : [`${(await backupIds(repository)).length} backups are kept, ${removed} removed.`]),
      `It is sealed. To restore it you also need the key ${repository.fingerprint}: ${secretKeyPlace(config)}. Keep a copy of that elsewhere.`,
    ];
  } finally {
    await others?.close();
    await lock.release();
  }
}

const leftOutLines = ({ node, leftOut }: Part): string[] =>
  leftOut
    ? [`Not in it: ${leftOut.count} files of node '${node.name}' that cannot be read, first ${leftOut.first}`]
    : [];

/** Other drivers keep volumes, images and the files of sandboxes where this command does not reach. */
function refuseOtherDrivers(config: Config): void {
  if (config.driver === "local") return;
  throw new PlatformError(
    "unprocessable",
    `Driver ${config.driver} keeps files outside of ${driverDir(config)}, so --files cannot take them. \`berth backup FILE\` takes the database; back up the files with the tools of the ${config.driver === "docker" ? "Docker Engine" : "cluster"}.`,
  );
}

export function keyOfData(config: Config): Buffer {
  const [inUse] = readSecretKeys(config);
  if (inUse) return inUse;
  throw new PlatformError("not_found", `There is nothing to back up in ${config.data}: it has no secret.key.`);
}

async function storeDatabase(config: Config, repository: Repository, key: Buffer, progress: Counted): Promise<Stored> {
  const dump = await openDump({
    ...{ databaseUrl: config.database_url ?? null, dataDir: config.data },
    ...{ version: packageVersion(), createdAt: toIso(Date.now()) },
    keyOf: (belongsTo) => {
      const fingerprint = fingerprintOf(key);
      if (belongsTo === null || belongsTo === fingerprint) return { fingerprint };
      throw new PlatformError(
        "conflict",
        `The secrets in this database are sealed with the key ${belongsTo}, but ${secretKeyPlace(config)} is ${fingerprint}. Bring back that key first.`,
      );
    },
  });
  try {
    return await repository.write(bytesIn(dump.pieces), progress);
  } finally {
    await dump.close();
  }
}

async function* bytesIn(pieces: AsyncIterable<string>): AsyncGenerator<Buffer> {
  for await (const piece of pieces) yield Buffer.from(piece);
}

type Counted = ReturnType<typeof countedProgress>;

export function countedProgress({ progress }: Teller) {
  let title = "";
  const counted = { readBytes: 0, sentBytes: 0, unit, read, sent };
  function unit(next: string): void {
    title = next;
    show();
  }
  function read(bytes: number): void {
    counted.readBytes += bytes;
    show();
  }
  function sent(bytes: number): void {
    counted.sentBytes += bytes;
  }
  const show = (): void =>
    progress(`${bytesText(counted.readBytes)} read, ${bytesText(counted.sentBytes)} sent: ${title}`);
  return counted;
}
