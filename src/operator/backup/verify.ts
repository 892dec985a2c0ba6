/** `berth backup verify`: reads every chunk of a backup, and tells which folders could not be restored. */
import { readSecretKeys, secretKeyPlace } from "../../auth/secret-key.ts";
import type { Config } from "../../config.ts";
import { PlatformError } from "../../contract/errors.ts";
import { bytesText } from "../../lib/bytes-text.ts";
import { chosenManifest, placeOf, repositoryToRead } from "./catalogue.ts";
import type { Teller } from "./everything.ts";
import { readPart, unitsIn } from "./part.ts";
import type { Repository, Stored } from "./repository/repository.ts";

export interface VerifyCommand {
  config: Config;
  target: string | undefined;
  id: string | undefined;
  tell: Teller;
}

/** Damaged folders that are named; a place that lost everything has thousands. */
const NAMED_MAX = 20;

/** Returns the lines to show; throws when the backup could not be restored whole. */
export async function verifyBackup({ config, target, id, tell }: VerifyCommand): Promise<string[]> {
  const repository = await repositoryToRead(placeOf(config, target), readSecretKeys(config), secretKeyPlace(config));
  const { id: chosen, database, nodes } = await chosenManifest(repository, id);
  const checker = new Checker(repository, tell);
  await checker.check("the database", database);
  for (const node of nodes) {
    const part = await readPart(repository, chosen, node.id).catch((error: unknown) => checker.note(node.name, error));
    if (part === null) checker.note(`all files of node '${node.name}'`, new Error("the list of them is missing"));
    if (!part) continue;
    try {
      for await (const { folder, name, tar } of unitsIn(repository, part))
        await checker.check([folder, name].filter(Boolean).join("/"), tar);
    } catch (error) {
      checker.note(`files of node '${node.name}'`, error);
    }
  }
  const { damages, chunks, bytes } = checker;
  if (damages.length === 0) return [`${chosen}: whole, ${chunks} chunks with ${bytesText(bytes)}`];
  const more = damages.length > NAMED_MAX ? [`and ${damages.length - NAMED_MAX} more`] : [];
  throw new PlatformError(
    "unprocessable",
    [`The backup ${chosen} is damaged:`, ...damages.slice(0, NAMED_MAX), ...more].join("\n  "),
  );
}

class Checker {
  readonly damages: string[] = [];
  readonly #repository: Repository;
  readonly #tell: Teller;
  /** Good chunks are read once. */
  readonly #good = new Set<string>();
  bytes = 0;

  constructor(repository: Repository, tell: Teller) {
    this.#repository = repository;
    this.#tell = tell;
  }

  get chunks(): number {
    return this.#good.size;
  }

  async check(title: string, { chunks }: Stored): Promise<void> {
    try {
      for (const name of chunks) {
        if (this.#good.has(name)) continue;
        this.bytes += (await this.#repository.chunk(name)).length;
        this.#good.add(name);
        this.#tell.progress(`${bytesText(this.bytes)} read: ${title}`);
      }
    } catch (error) {
      this.note(title, error);
    }
  }

  note(title: string, error: unknown): undefined {
    this.damages.push(`${title}: ${error instanceof Error ? error.message : String(error)}`);
  }
}
