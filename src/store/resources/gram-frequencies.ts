/**
 * How frequent a gram is, by PostgreSQL's own statistics. The planner multiplies the shares of a query's grams as if
 * they came independently; those of one word come together, so it takes a common word for a rare one, gathers every
 * match and sorts them all for one page. We look at the rarest gram alone and decide ourselves.
 */
import { sql } from "kysely";
import type { Clock } from "../../lib/time/clock.ts";
import type { Database } from "../database/database.ts";

/** The database renews them about every minute where much changes; reading them is one small query. */
const KEPT_MS = 10_000;

interface Known {
  /** Share of all rows that have the gram; of those that are not frequent nothing is known. */
  shares: Map<string, number>;
  rows: number;
}

export interface GramFrequencies {
  /** About how many rows have all of these; 0 where it is not known, because they are few. */
  matches(grams: readonly string[]): Promise<number>;
}

export function createGramFrequencies(database: Database, clock: Clock): GramFrequencies {
  let known: Promise<Known> | null = null;
  let readAt = 0;

  async function read(): Promise<Known> {
    const { rows: found } = await sql<{ grams: string[] | null; shares: number[] | null; n: number }>`
      SELECT s.most_common_elems::text::text[] AS grams, s.most_common_elem_freqs AS shares,
        greatest(c.reltuples, 0)::float8 AS n
      FROM pg_class c
      LEFT JOIN pg_stats s ON s.schemaname = current_schema() AND s.tablename = 'resources' AND s.attname = 'grams'
      WHERE c.oid = to_regclass('resources')`.execute(database.read);
    const { grams, shares, n } = found[0] ?? { grams: null, shares: null, n: 0 };
    return { rows: n, shares: new Map(grams?.map((gram, at) => [gram, shares?.[at] ?? 0])) };
  }

  return {
    async matches(grams) {
      if (known === null || clock.now() - readAt > KEPT_MS) {
        readAt = clock.now();
        known = read();
        known.catch(() => {
          known = null; // whoever asked is told; the next one asks again
        });
      }
      const { shares, rows } = await known;
      return rows * Math.min(...grams.map((gram) => shares.get(gram) ?? 0));
    },
  };
}
