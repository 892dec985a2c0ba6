/** The rows behind resources: the fixed queries that every request runs, each in one place. */
import { notFound } from "../../contract/errors.ts";
import { type Soon, soon } from "../../lib/soon.ts";
import { type Dialect, fixedQuery, type Queries, type SharedWork } from "../database/database.ts";
import type { ResourceRow } from "../database/schema.ts";
import { rowidOf } from "./resource.ts";
import { REVISIONS_MAX } from "./revision.ts";
import type { ListScope } from "./search-grams.ts";

const COLUMNS = [
  "id",
  "uid",
  "workspace",
  "kind",
  "parent",
  "name",
  "slot",
  "external_id",
  "status",
  "generation",
  "observed_generation",
  "version",
  "created_at",
  "updated_at",
  "deleted_at",
  "created_by",
  "updated_by",
  "metadata",
  "spec",
  "secrets",
  "state",
  "events",
  "search",
  "node",
  "status_at",
] as const satisfies (keyof ResourceRow)[];
const MARKS = COLUMNS.map(() => "?").join(", ");
const BY_SLOT = fixedQuery<ResourceRow>(
  "SELECT * FROM resources WHERE workspace = ? AND kind = ? AND parent = ? AND slot = ?",
);
const BY_UID = fixedQuery<ResourceRow>("SELECT * FROM resources WHERE uid = ?");
// SQLite has one writer, so there is nothing to lock.
const LOCKED = fixedQuery<ResourceRow>({
  sqlite: "SELECT * FROM resources WHERE uid = ? AND workspace = ?",
  postgres: "SELECT * FROM resources WHERE uid = ? AND workspace = ? FOR UPDATE",
});
const LIVE_NAME = "SELECT name FROM workspaces WHERE name = ? AND deleted_at IS NULL";
const LIVE_WORKSPACE = fixedQuery<{ name: string }>({ sqlite: LIVE_NAME, postgres: `${LIVE_NAME} FOR SHARE` });
const LIVE_PARENT = fixedQuery<{ uid: string }>({
  sqlite: "SELECT uid FROM resources WHERE uid = ? AND workspace = ? AND deleted_at IS NULL",
  postgres: "SELECT uid FROM resources WHERE uid = ? AND workspace = ? AND deleted_at IS NULL FOR SHARE",
});
const INSERT = fixedQuery({
  // The same statement checks that the workspace is live: otherwise its name column is null and the row is ignored like
  // one with a taken slot. (INSERT ... SELECT would open a savepoint and make the search index flush its pending part.)
  sqlite: `INSERT OR IGNORE INTO resources (${COLUMNS.join(", ")})
    VALUES (${COLUMNS.map((column) => (column === "workspace" ? `(${LIVE_NAME})` : "?")).join(", ")})`,
  postgres: `INSERT INTO resources (${COLUMNS.join(", ")}, grams) VALUES (${MARKS}, ?::text[]) ON CONFLICT DO NOTHING`,
});
const NEW_GRAMS = fixedQuery("INSERT INTO resource_grams (rowid, grams) VALUES (?, ?)");
/** The columns that an update may change; id and uid never change. */
const CHANGED = COLUMNS.filter((column) => column !== "id" && column !== "uid");
const UPDATE = fixedQuery(`UPDATE resources SET ${CHANGED.map((column) => `${column} = ?`).join(", ")} WHERE uid = ?`);
const GRAMS = fixedQuery({
  sqlite: "INSERT OR REPLACE INTO resource_grams (rowid, grams) VALUES (?, ?)",
  postgres: "UPDATE resources SET grams = ?::text[] WHERE uid = ?",
});
const COUNT = fixedQuery(
  `INSERT INTO resource_counts (workspace, kind, parent, n) VALUES (?, ?, ?, ?)
   ON CONFLICT (workspace, kind, parent) DO UPDATE SET n = resource_counts.n + excluded.n`,
);

export const rowBySlot = (
  queries: Queries,
  dialect: Dialect,
  { workspace, kind, parent }: ListScope,
  slot: string,
): Soon<ResourceRow | undefined> => BY_SLOT.first(queries, dialect, [workspace, kind, parent, slot]);

export const rowByUid = (queries: Queries, dialect: Dialect, uid: string): Soon<ResourceRow | undefined> =>
  BY_UID.first(queries, dialect, [uid]);

export const lockRow = (
  queries: Queries,
  dialect: Dialect,
  workspace: string,
  uid: string,
): Soon<ResourceRow | undefined> => LOCKED.first(queries, dialect, [uid, workspace]);

export const updateRow = (queries: Queries, dialect: Dialect, row: ResourceRow): Soon<number> =>
  UPDATE.run(queries, dialect, [...CHANGED.map((column) => row[column]), row.uid]);

/** Refuses to create anything in a workspace or below a parent that is being deleted. */
export async function requireLiveParents(
  queries: Queries,
  dialect: Dialect,
  { workspace, parent }: ListScope,
): Promise<void> {
  await requireLiveWorkspace(queries, dialect, workspace);
  if (parent !== "" && !(await LIVE_PARENT.first(queries, dialect, [parent, workspace])))
    throw notFound("The containing resource");
}

/** Locks the workspace row: a concurrent deletion waits for this transaction, or this transaction sees it. */
export async function requireLiveWorkspace(queries: Queries, dialect: Dialect, name: string): Promise<void> {
  if (!(await LIVE_WORKSPACE.first(queries, dialect, [name]))) throw notFound(`Workspace '${name}'`);
}

export async function indexGrams(queries: Queries, dialect: Dialect, uid: string, grams: string[]): Promise<void> {
  if (dialect === "postgres") await GRAMS.run(queries, dialect, [grams, uid]);
  else await GRAMS.run(queries, dialect, [rowidOf(uid), grams.join(" ")]);
}

export const count = (
  queries: Queries,
  dialect: Dialect,
  { workspace, kind, parent }: ListScope,
  by: number,
): Soon<number> => COUNT.run(queries, dialect, [workspace, kind, parent, by]);

/** Counts new resources of many writers at once. The order of the keys is fixed so that writers do not deadlock. */
export const countNew =
  (dialect: Dialect): SharedWork<ListScope> =>
  async (queries, scopes) => {
    const sums = new Map<string, { scope: ListScope; n: number }>();
    for (const scope of scopes) {
      const key = `${scope.workspace}\0${scope.kind}\0${scope.parent}`;
      const sum = sums.get(key);
      if (sum) sum.n += 1;
      else sums.set(key, { scope, n: 1 });
    }
    for (const key of [...sums.keys()].sort()) {
      const { scope, n } = sums.get(key) as { scope: ListScope; n: number };
      await count(queries, dialect, scope, n);
    }
  };

/** Keeps the row's spec as a revision and removes the oldest beyond the maximum, except those that take traffic. */
export async function keepRevision(
  queries: Queries,
  row: Pick<ResourceRow, "uid" | "workspace" | "generation" | "spec" | "state" | "secrets">,
  actor: string,
  now: number,
): Promise<void> {
  await queries
    .insertInto("revisions")
    .values({
      uid: row.uid,
      revision: String(row.generation),
      workspace: row.workspace,
      created_at: now,
      created_by: actor,
      spec: row.spec,
      secrets: row.secrets,
    })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  const { active = "", canary = "" } = (JSON.parse(row.spec).revision ?? {}) as { active?: string; canary?: string };
  // After failed deployments an older revision may still be the one that answers.
  const { activeRevision = "" } = JSON.parse(row.state) as { activeRevision?: string };
  const kept = queries
    .selectFrom("revisions")
    .select("revision")
    .where("uid", "=", row.uid)
    .orderBy((eb) => eb.case().when("revision", "in", [active, canary, activeRevision]).then(0).else(1).end())
    .orderBy("created_at", "desc")
    .orderBy((eb) => eb.fn("length", ["revision"]), "desc")
    .orderBy("revision", "desc")
    .limit(REVISIONS_MAX);
  await queries.deleteFrom("revisions").where("uid", "=", row.uid).where("revision", "not in", kept).execute();
}

/** Returns false when the slot is taken, or on SQLite also when the workspace is being deleted. */
export function insertRow(queries: Queries, dialect: Dialect, row: ResourceRow, grams: string[]): Soon<boolean> {
  const values: unknown[] = [];
  for (const column of COLUMNS) values.push(row[column]);
  return soon(INSERT.run(queries, dialect, dialect === "postgres" ? [...values, grams] : values), (inserted) => {
    if (inserted === 0 || dialect === "postgres") return inserted > 0;
    return soon(NEW_GRAMS.run(queries, dialect, [row.id, grams.join(" ")]), () => true);
  });
}
