/** Tells the other servers of the database about uses of a limit, as changes that nothing is written for. */
import { randomWord } from "../../lib/ids.ts";
import type { UseChannel } from "../../lib/use-channel.ts";
import type { Database } from "../database/database.ts";

const TOPIC = "use";
const WORD_LENGTH = 16;

/** `limit` is the same word at every server. */
export type SharedUses = (limit: string) => UseChannel;

export function createSharedUses({ database }: { database: Database }): SharedUses {
  const self = randomWord(WORD_LENGTH);
  return (limit) => ({
    tell(address) {
      // A SQLite database has one server.
      if (database.dialect === "sqlite") return;
      const use = { topic: TOPIC, key: `${limit}/${address.replaceAll(/\s/g, "")}`, about: self };
      void database.write(async (tx) => tx.announce(use)).catch(() => {}); // the database is down, or this server stops
    },
    hear(count) {
      database.onChange(({ topic, key, about }) => {
        const isOthers = topic === TOPIC && about !== self && key.startsWith(`${limit}/`);
        if (isOthers) count(key.slice(limit.length + 1));
      });
    },
  });
}
