/**
 * Estimates the frequency of grams from PostgreSQL's own statistics. The planner multiplies the frequencies of a
 * query's grams as if they were independent. The grams of one word occur together, so the planner takes a common word
 * for a rare one and fetches and sorts every match for one page. This module looks at the rarest gram alone.
 */
import { sql } from "kysely";
import type { Clock } from "../../lib/time/clock.ts";
import type { Database } from "../database/database.ts";

/** How long the statistics are cached. PostgreSQL renews them about every minute; reading them is one small query. */
const KEPT_MS = 10_000;

interface Known {
  /** Share of all rows that contain the gram. Only frequent grams have an entry. */
  shares: Map<string, number>;
  rows: number;
}

export interface GramFrequencies {
  /** Estimated number of rows that have all of these grams; 0 when a gram is too rare for the statistics. */
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
          known = null; // this caller gets the error, the next one tries again
        });
      }
      const { shares, rows } = await known;
      return rows * Math.min(...grams.map((gram) => shares.get(gram) ?? 0));
    },
  };
}
