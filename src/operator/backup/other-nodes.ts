/**
 * The parts of other nodes. A record in the database asks the servers of those nodes, and each of them writes its part
 * into the repository with its own settings. A SQLite file has one node, and nobody to ask.
 */
import { setTimeout as pause } from "node:timers/promises";
import { unlock } from "../../auth/secret-key.ts";
import type { Config } from "../../config.ts";
import { PlatformError } from "../../contract/errors.ts";
import { DAY_MS, SECOND_MS, systemClock } from "../../lib/time/clock.ts";
import { openStore, type Store } from "../../store/store.ts";
import { nodeWord, type Part, readPart } from "./part.ts";
import type { Repository } from "./repository/repository.ts";

/** Names of records that ask for parts. */
export const REQUESTS = "backup-request/";
const LOOK_MS = SECOND_MS;

export interface PartRequest {
  backup: string;
  target: string;
  nodes: string[];
}

export interface OtherNodes {
  /** Names of nodes whose files are left out. */
  left: string[];
  /** Waits for all parts. */
  parts(progress: (line: string) => void): Promise<Part[]>;
  close(): Promise<void>;
}

export interface OtherNodesOptions {
  config: Config;
  backup: string;
  /** Id of the own node. */
  node: string;
  repository: Repository;
  skipLost: boolean;
}

const NOBODY: OtherNodes = { left: [], parts: async () => [], close: async () => {} };

export async function openOtherNodes(options: OtherNodesOptions): Promise<OtherNodes> {
  const { config, backup, node, repository, skipLost } = options;
  if (!config.database_url) return NOBODY;
  const store = await openStore({
    ...{ databaseUrl: config.database_url, dataDir: config.data, unlock: unlock(config), clock: systemClock },
    onError: () => {}, // a lost connection fails the next query
  });
  const key = `${REQUESTS}${backup}`;
  const close = async (): Promise<void> => {
    await store.records.remove(key).catch(() => {}); // it expires
    await store.close();
  };
  try {
    const lostAfterMs = config.node_lost_after * SECOND_MS;
    const others = (await store.nodes.list(lostAfterMs)).filter(({ id }) => id !== node);
    const lost = others.filter(({ live }) => !live).map(({ name }) => name);
    if (lost.length > 0 && !skipLost)
      throw new PlatformError(
        "unavailable",
        `The files of node '${lost.join("', '")}' cannot be read: the node is lost. Bring it back, remove it with \`berth nodes remove\`, or leave its files out with --skip-lost.`,
      );
    const asked = others.filter(({ live }) => live);
    if (asked.length > 0) {
      const request: PartRequest = { backup, target: repository.place.shown, nodes: asked.map(({ id }) => id) };
      await store.records.update(key, systemClock.now() + DAY_MS, () => ({
        value: JSON.stringify(request),
        result: null,
      }));
    }
    return { left: lost, close, parts: (progress) => partsOf(asked, store, lostAfterMs, options, progress) };
  } catch (error) {
    await close();
    throw error;
  }
}

async function partsOf(
  asked: readonly { id: string; name: string }[],
  store: Store,
  lostAfterMs: number,
  { repository, backup }: OtherNodesOptions,
  progress: (line: string) => void,
): Promise<Part[]> {
  const parts: Part[] = [];
  for (const { id, name } of asked)
    for (;;) {
      const part = await readPart(repository, backup, id);
      if (part) {
        parts.push(part);
        break;
      }
      const reason = await store.records.read(failureKey(backup, id));
      if (reason) throw new PlatformError("unavailable", `Node '${name}' could not store its files: ${reason}`);
      const isLive = (await store.nodes.list(lostAfterMs)).some((node) => node.id === id && node.live);
      if (!isLive) throw new PlatformError("unavailable", `Node '${name}' was lost while it stored its files.`);
      progress(`waiting for the files of node '${name}'`);
      await pause(LOOK_MS);
    }
  return parts;
}

/** The record in which a node says why it has no part. */
export const failureKey = (backup: string, node: string): string => `backup-failed/${backup}/${nodeWord(node)}`;
