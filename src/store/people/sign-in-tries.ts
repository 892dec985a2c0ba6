/** How often a password was tried lately, counted before it is checked, so that tries at the same time count too. */
import { type Clock, MINUTE_MS } from "../../lib/time/clock.ts";
import type { Database, Transaction } from "../database/database.ts";

/** Counts start over this long after the first try. */
export const TRIES_WINDOW_MS = 15 * MINUTE_MS;

export interface TryLimit {
  key: string;
  max: number;
}

export type Verdict = "allowed" | "just_exceeded" | "exceeded";

export type SignInTries = ReturnType<typeof createSignInTries>;

export function createSignInTries({ database, clock }: { database: Database; clock: Clock }) {
  /** One more than `max` marks a key whose excess was told; a flood of refused tries then reads and writes nothing. */
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
     * Counts one try for each key, and tells whether any of them has had too many, and whether that is news. A try
     * that is refused counts for no key.
     */
    async count(limits: readonly TryLimit[]): Promise<Verdict> {
      if (await isKnownExcess(limits)) return "exceeded";
      return database.write(async (tx) => {
        const counted: (TryLimit & { tries: number })[] = [];
        // In one order for everybody, so that two tries never wait for each other's rows.
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

    /** After a try that was right: `clear` starts over, and in `refund` the try itself does not count. */
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
