import type { Dialect, Queries } from "../database.ts";

export interface Migration {
  id: number;
  name: string;
  both: readonly string[];
  sqlite?: readonly string[];
  postgres?: readonly string[];
  /** What SQL alone cannot say, after the statements. It has no checksum of its own: it is told by its name. */
  work?(queries: Queries, dialect: Dialect): Promise<void>;
}
