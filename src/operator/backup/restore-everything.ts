/**
 * `berth restore` from a repository: the files of a node, and the database. Files are unpacked beside what is there and
 * take its place only when all of them are whole; the database follows in one transaction. Ended at any moment, the data
 * folder is as it was, or a server refuses to start on it until the command was run again.
 */
import { createWriteStream, existsSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { readSecretKeys, secretKeyPlace } from "../../auth/secret-key.ts";
import { type Config, driverDir } from "../../config.ts";
import { PlatformError } from "../../contract/errors.ts";
import { removeTree } from "../../lib/remove-tree.ts";
import { UsageError } from "../../lib/usage-error.ts";
import { openLocalDriver } from "../../node/drivers/local/local-driver.ts";
import { cachedSandboxd } from "../../node/sandboxd-build.ts";
import { readBackup } from "../../store/backup/format.ts";
import { refuseBusyPostgres } from "../../store/backup/restore.ts";
import { lockDataFolder } from "../../store/database/data-lock.ts";
import { ownedWorkloads } from "../runtime.ts";
import { chosenManifest, type Manifest, placeOf, repositoryToRead } from "./catalogue.ts";
import { countedProgress, type Teller } from "./everything.ts";
import { restoreDatabase, total } from "./one-file.ts";
import { type Part, readPart, unitsIn } from "./part.ts";
import { damaged, type Repository, type Stored } from "./repository/repository.ts";
import { settleUnit } from "./restored-record.ts";
import { Swap } from "./swap.ts";
import { FAMILIES, type Family, unitsOf } from "./units.ts";

export interface RestoreEverythingCommand {
  config: Config;
  target: string | undefined;
  /** The newest when absent. */
  id: string | undefined;
  /** Name or id of the node whose files come to this machine; may be absent when there is one. */
  node: string | undefined;
  /** Leaves the database alone: it was restored with the files of another node. */
  filesOnly: boolean;
  force: boolean;
  tell: Teller;
}

/** Returns the lines to show to the operator. */
export async function restoreEverything(command: RestoreEverythingCommand): Promise<string[]> {
  const { config, target, filesOnly } = command;
  if (config.driver !== "local") throw new UsageError("Files can be restored for driver local only.");
  const repository = await repositoryToRead(placeOf(config, target), readSecretKeys(config), secretKeyPlace(config));
  const manifest = await chosenManifest(repository, command.id);
  const part = await partOf(repository, manifest, command.node);
  if (config.database_url && !filesOnly) await refuseBusyPostgres(config.database_url);
  const owner = lockDataFolder(config.data, `pid ${process.pid}, restoring a backup`, { restores: true });
  try {
    await refuseRunning(config);
    const swap = new Swap(config.data);
    const wasInterrupted = await swap.undo();
    const force = command.force || wasInterrupted;
    if (!force && unitsOf(config.data).some(({ family }) => family.each)) throw notEmpty(config);
    try {
      await unpackUnits(repository, part, swap.staged, command);
      await swap.begin(part.node);
      const rows = filesOnly ? null : await databaseOf(repository, manifest, config, force);
      await swap.finish();
      return [
        `restored ${part.units} folders of node '${part.node.name}'${rows === null ? "" : ` and ${total(rows)} rows`}, as they were at ${manifest.createdAt}`,
        ...manifest.nodes
          .filter(({ id }) => id !== part.node.id)
          .map(({ name }) => `On the machine for node '${name}': berth restore … --files-only --node ${name}`),
        "API keys of that time are valid again. Start the server with `berth up`.",
      ];
    } catch (error) {
      await swap.undo();
      throw error;
    }
  } finally {
    await owner.stop();
  }
}

async function partOf(repository: Repository, { id, nodes }: Manifest, wanted: string | undefined): Promise<Part> {
  const found = nodes.filter((node) => wanted === undefined || node.id === wanted || node.name === wanted);
  const [node, second] = found;
  if (!node || second)
    throw new UsageError(
      node ? "The backup has the files of several nodes." : `The backup has no node '${wanted}'.`,
      `choose one with --node: ${nodes.map(({ name }) => name).join(", ")}`,
    );
  const part = await readPart(repository, id, node.id);
  if (part && part.node.id === node.id) return part;
  throw damaged(`the files of node '${node.name}' are missing`);
}

async function refuseRunning(config: Config): Promise<void> {
  if (!existsSync(driverDir(config)) || !(await ownedWorkloads(config)).some(({ runs }) => runs)) return;
  throw new PlatformError(
    "conflict",
    `Workloads of ${config.data} are still running. End them with \`berth down\` first.`,
  );
}

const notEmpty = ({ data }: Config): PlatformError =>
  new PlatformError(
    "conflict",
    `${data} is not empty. Restore into a new data folder, or replace everything in this one with --force.`,
  );

/** Every tar is whole, and each of its chunks is proven, before the first of its files is made. */
async function unpackUnits(
  repository: Repository,
  part: Part,
  staged: string,
  { config, tell }: RestoreEverythingCommand,
): Promise<void> {
  // The whole list is read before the first folder is made.
  for await (const { folder, name } of unitsIn(repository, part)) familyOf(folder, name);
  const [work, archive] = [join(staged, "work"), join(staged, "unit.tar")];
  mkdirSync(work, { recursive: true, mode: 0o700 });
  const progress = countedProgress(tell);
  const driver = await openLocalDriver({
    ...{ dataDir: work, brand: config.brand, allowUnisolated: true, outbound: "proxy", runsc: config.runsc },
    sandboxd: await cachedSandboxd(join(driverDir(config), "bin")),
  });
  try {
    for await (const { folder, name, tar } of unitsIn(repository, part)) {
      const to = join(staged, "files", folder, name);
      const family = familyOf(folder, name);
      if (family.each && existsSync(to)) throw damaged(`it holds ${folder}/${name} twice`);
      progress.unit(`${folder}/${name}`);
      mkdirSync(to, { recursive: true, mode: 0o700 });
      await writeTar(repository, tar, archive, progress.read);
      await driver.unpackTree(archive, to).catch((error: unknown) => {
        throw damaged(`${folder}/${name} cannot be unpacked: ${error instanceof Error ? error.message : error}`);
      });
      settleUnit(to, family, { from: join(part.dataDir, "runtime"), to: driverDir(config) });
    }
  } finally {
    rmSync(archive, { force: true });
    await driver.stop("kill");
    await removeTree(work);
  }
}

function familyOf(folder: string, name: string): Family {
  const family = FAMILIES.find((each) => each.folder === folder);
  if (family && family.each === (name !== "")) return family;
  throw damaged("it holds a folder that no backup writes");
}

async function writeTar(
  repository: Repository,
  tar: Stored,
  archive: string,
  onRead: (bytes: number) => void,
): Promise<void> {
  async function* counted(): AsyncGenerator<Buffer> {
    for await (const chunk of repository.read(tar)) {
      onRead(chunk.length);
      yield chunk;
    }
  }
  await pipeline(Readable.from(counted()), createWriteStream(archive, { mode: 0o600 }));
}

async function databaseOf(
  repository: Repository,
  { database }: Manifest,
  config: Config,
  force: boolean,
): Promise<Record<string, number>> {
  const source = Readable.from(repository.read(database));
  const backup = await readBackup(source, source);
  try {
    return await restoreDatabase(config, backup, force);
  } finally {
    backup.close();
  }
}
