/** Recent tries of a password. A try is counted before the password is checked, so that concurrent tries count too. */
import { type Clock, MINUTE_MS } from "../../lib/time/clock.ts";
import type { Database, Transaction } from "../database/database.ts";

/** A counter starts over this long after its first try. */
export const TRIES_WINDOW_MS = 15 * MINUTE_MS;

export interface TryLimit {
  key: string;
  max: number;
}

export type Verdict = "allowed" | "just_exceeded" | "exceeded";

export type SignInTries = ReturnType<typeof createSignInTries>;

export function createSignInTries({ database, clock }: { database: Database; clock: Clock }) {
  /**
   * A count of `max + 1` marks a key whose excess was already reported. A flood of refused tries then writes nothing.
   */
  const isKnownExcess = async (limits: readonly TryLimit[]): Promise<boolean> => {
    const keys = limits.map(({ key }) => key);
    const rows = await database.read
      .selectFrom("sign_in_tries")
      .select(["key", "tries"])
      .where("key", "in", keys)
      .where("since", ">", clock.now() - TRIES_WINDOW_MS)
      .execute();
    return rows.some(({ key, tries }) => limits.some((limit) => limit.key === key && Number(tries) > limit.max));
  };

  return {
    /**
     * Counts one try for each key. Returns whether a key has exceeded its limit, and whether that happened just now. A
     * refused try counts for no key.
     */
    async count(limits: readonly TryLimit[]): Promise<Verdict> {
      if (await isKnownExcess(limits)) return "exceeded";
      return database.write(async (tx) => {
        const counted: (TryLimit & { tries: number })[] = [];
        // Always in the same order, so that two concurrent tries do not deadlock.
        for (const limit of [...limits].sort((a, b) => (a.key < b.key ? -1 : 1)))
          counted.push({ ...limit, tries: await addOne(tx, limit.key, clock.now()) });
        const exceeded = counted.filter(({ tries, max }) => tries > max);
        if (exceeded.length === 0) return "allowed";
        const isNews = exceeded.some(({ tries, max }) => tries === max + 1);
        for (const { key, tries, max } of counted)
          if (tries !== max + 1) await setTries(tx, key, Math.min(tries - 1, max + 1));
        return isNews ? "just_exceeded" : "exceeded";
      });
    },

    /** After a successful try: resets the keys in `clear` and takes the try back from the keys in `refund`. */
    async forgive({ clear, refund }: { clear: readonly string[]; refund: readonly string[] }): Promise<void> {
      await database.write(async ({ queries }) => {
        if (clear.length > 0) await queries.deleteFrom("sign_in_tries").where("key", "in", clear).execute();
        for (const key of [...refund].sort())
          await queries
            .updateTable("sign_in_tries")
            .set((eb) => ({ tries: eb("tries", "-", 1) }))
            .where("key", "=", key)
            .where("tries", ">", 0)
            .execute();
      });
    },

    async forgetOld(): Promise<void> {
      await database.write(({ queries }) =>
        queries
          .deleteFrom("sign_in_tries")
          .where("since", "<=", clock.now() - TRIES_WINDOW_MS)
          .execute(),
      );
    },
  };
}

async function addOne({ queries }: Transaction, key: string, now: number): Promise<number> {
  const { tries } = await queries
    .insertInto("sign_in_tries")
    .values({ key, tries: 1, since: now })
    .onConflict((conflict) =>
      conflict.column("key").doUpdateSet((eb) => {
        const over = eb("sign_in_tries.since", "<=", now - TRIES_WINDOW_MS);
        return {
          tries: eb
            .case()
            .when(over)
            .then(1)
            .else(eb("sign_in_tries.tries", "+", 1))
            .end(),
          since: eb.case().when(over).then(now).else(eb.ref("sign_in_tries.since")).end(),
        };
      }),
    )
    .returning("tries")
    .executeTakeFirstOrThrow();
  return Number(tries);
}

const setTries = ({ queries }: Transaction, key: string, tries: number) =>
  queries.updateTable("sign_in_tries").set({ tries }).where("key", "=", key).execute();
