import { sql } from "kysely";
import { DNS_LABEL_MAX, WORKLOADS } from "../../../contract/addresses.ts";
import { HOST_LABEL, internalWish, type WordWish, workloadWish } from "../../../contract/held-words.ts";
import { INTERNAL_KINDS } from "../../../contract/internal-names.ts";
import { claimWord } from "../../resources/held-words.ts";
import type { Dialect, Queries } from "../database.ts";
import type { Migration } from "./migration.ts";

/**
 * A host name belongs to one owner for ever; see held-words.ts. Existing resources keep their addresses, oldest first.
 */
export const heldWords: Migration = {
  id: 19,
  name: "held-words",
  both: [
    `CREATE TABLE held_words (pool {text} NOT NULL, word {text} NOT NULL, account_id {text} NOT NULL, workspace {text} NOT NULL,
      kind {text} NOT NULL, name {text} NOT NULL, uid {text} NOT NULL, PRIMARY KEY (pool, word)) {without_rowid}`,
    "CREATE INDEX held_words_owner ON held_words (workspace, kind, name) WHERE pool <> 'workload'",
    // A prefix is unique within its workspace; the host name made from it is held separately.
    `UPDATE resource_links SET target = workspace || '/' || substr(target, 1, length(target) - length(workspace) - 1)
      WHERE target_kind = 'preview-prefix' AND target_workspace = ''`,
  ],
  async work(queries, dialect) {
    for (const kind of Object.keys(WORKLOADS)) await holdWorkloads(queries, dialect, kind);
    for (const kind of INTERNAL_KINDS)
      await eachOf(queries, kind, async ({ uid, ...owner }) => {
        const wish = internalWish({ ...owner, kind });
        if (wish) await claimWord(queries, dialect, wish, uid);
      });
    await holdPreviews(queries, dialect);
  },
};

interface Row {
  uid: string;
  workspace: string;
  name: string;
}

const PAGE = 500;

/** Claims the words of all workloads in one statement, then another word for the few whose word an older one holds. */
async function holdWorkloads(queries: Queries, dialect: Dialect, kind: string): Promise<void> {
  const { label } = WORKLOADS[kind as keyof typeof WORKLOADS];
  const word = sql`${sql.lit(`${label}-`)} || r.name || '-' || r.workspace`;
  const live = sql`r.kind = ${sql.lit(kind)} AND r.parent = '' AND r.slot NOT LIKE '~%' AND length(${word}) <= ${sql.lit(DNS_LABEL_MAX)}`;
  await sql`INSERT INTO held_words (pool, word, account_id, workspace, kind, name, uid)
    SELECT 'workload', ${word}, COALESCE(w.account_id, ''), r.workspace, r.kind, r.name, r.uid
    FROM resources r LEFT JOIN workspaces w ON w.name = r.workspace WHERE ${live} ORDER BY r.uid
    ON CONFLICT (pool, word) DO NOTHING`.execute(queries);
  const { rows } = await sql<Row>`SELECT r.uid, r.workspace, r.name FROM resources r
    JOIN held_words h ON h.pool = 'workload' AND h.word = ${word} WHERE ${live} AND h.uid <> r.uid
    ORDER BY r.uid`.execute(queries);
  for (const { uid, workspace, name } of rows) {
    const wish = workloadWish({ workspace, kind, name });
    if (wish) await writeLabel(queries, uid, await claimWord(queries, dialect, wish, uid));
  }
}

/** An existing preview is reached by its uid or its prefix, and keeps that word until it is deleted. */
async function holdPreviews(queries: Queries, dialect: Dialect): Promise<void> {
  await eachOf(queries, "preview", async ({ uid, workspace, name, parent, spec }) => {
    const { prefixUrl, customDomain } = JSON.parse(spec) as { prefixUrl?: string; customDomain?: string };
    const sandbox = await queries.selectFrom("resources").select("name").where("uid", "=", parent).executeTakeFirst();
    const wish: WordWish =
      prefixUrl && !customDomain
        ? {
            pool: "preview",
            owner: { workspace, kind: "prefix", name: prefixUrl },
            natural: `${prefixUrl}-${workspace}`,
          }
        : {
            pool: "preview",
            owner: { workspace, kind: "preview", name: `${sandbox?.name ?? ""}/${name}` },
            natural: uid,
          };
    await writeLabel(queries, uid, await claimWord(queries, dialect, wish, uid));
  });
}

async function eachOf(
  queries: Queries,
  kind: string,
  take: (row: Row & { parent: string; spec: string }) => Promise<void>,
): Promise<void> {
  for (let after = "", more = true; more; ) {
    const page = await queries
      .selectFrom("resources")
      .select(["uid", "workspace", "name", "parent", "spec"])
      .where("kind", "=", kind)
      .where("slot", "not like", "~%")
      .where("uid", ">", after)
      .orderBy("uid")
      .limit(PAGE)
      .execute();
    for (const row of page) await take(row);
    after = page.at(-1)?.uid ?? "";
    more = page.length === PAGE;
  }
}

async function writeLabel(queries: Queries, uid: string, word: string): Promise<void> {
  const row = await queries.selectFrom("resources").select("state").where("uid", "=", uid).executeTakeFirst();
  if (!row) return;
  const state = JSON.stringify({ ...JSON.parse(row.state), [HOST_LABEL]: word });
  await queries.updateTable("resources").set({ state }).where("uid", "=", uid).execute();
}
