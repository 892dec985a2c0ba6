import type { Dialect, Queries } from "../database.ts";

export interface Migration {
  id: number;
  name: string;
  both: readonly string[];
  sqlite?: readonly string[];
  postgres?: readonly string[];
  /** Runs after the statements, for changes that SQL alone cannot express. The checksum does not cover it. */
  work?(queries: Queries, dialect: Dialect): Promise<void>;
}
