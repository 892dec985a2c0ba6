/** The part of Bun's SQLite that sql-child.ts uses. */
declare module "bun:sqlite" {
  export type Value = string | number | boolean | null | Uint8Array;

  export interface Statement {
    readonly columnNames: string[];
    iterate(...params: Value[]): Iterable<Record<string, unknown>>;
  }

  export class Database {
    constructor(file: string, options: { readonly?: boolean; create?: boolean; readwrite?: boolean });
    run(sql: string): void;
    prepare(sql: string): Statement;
    close(): void;
  }
}
