/** How often a password was tried lately, counted before it is checked, so that tries at the same time count too. */
import { type Clock, MINUTE_MS } from "../lib/clock.ts";
import type { Database } from "./database.ts";

/** Counts start over this long after the first try. */
export const TRIES_WINDOW_MS = 15 * MINUTE_MS;

export interface TryLimit {
  key: string;
  max: number;
}

export type SignInTries = ReturnType<typeof createSignInTries>;

export function createSignInTries({ database, clock }: { database: Database; clock: Clock }) {
  return {
    /** Counts one try for each key, and tells whether any of them has had too many, and whether that is news. */
    async count(limits: readonly TryLimit[]): Promise<"allowed" | "just_exceeded" | "exceeded"> {
      return database.write(async ({ queries }) => {
        const now = clock.now();
        let verdict: "allowed" | "just_exceeded" | "exceeded" = "allowed";
        for (const { key, max } of [...limits].sort((a, b) => (a.key < b.key ? -1 : 1))) {
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
          if (Number(tries) === max + 1) verdict = "just_exceeded";
          else if (Number(tries) > max && verdict === "allowed") verdict = "exceeded";
        }
        return verdict;
      });
    },

    async clear(keys: readonly string[]): Promise<void> {
      await database.write(({ queries }) => queries.deleteFrom("sign_in_tries").where("key", "in", keys).execute());
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
