/**
 * The audit log. It is append-only and chained: each line's keyed hash covers the line before it, so a changed, removed
 * or inserted line shows, and write access to the database alone is not enough to forge a line. Old lines may be pruned
 * from the front; `audit_base` keeps the number and hash of the last pruned line, sealed with the same key.
 */
import { createHmac, createSecretKey } from "node:crypto";
import type { Clock } from "../lib/time/clock.ts";
import { type Database, fixedQuery, type Queries, type Transaction } from "./database/database.ts";
import type { AuditRow } from "./database/schema.ts";

export interface AuditEntry {
  actor: string;
  actorType: string;
  /** The actor's display name. */
  actorName: string;
  authMethod: string;
  keyId: string | null;
  /** An operation id, or the name of another event. */
  action: string;
  target: string;
  accountId: string | null;
  workspace: string | null;
  outcome: AuditOutcome;
  status: number;
  sourceAddress: string;
  requestId: string;
}

export type AuditOutcome = "ok" | "denied" | "failed";
export type AuditLine = AuditEntry & { seq: number; at: number; hash: string };

export interface AuditFilter {
  workspace?: string | undefined;
  accountId?: string | undefined;
  actor?: string | undefined;
  action?: string | undefined;
  outcome?: string | undefined;
  from?: number | undefined;
  to?: number | undefined;
  beforeSeq?: number | undefined;
  limit: number;
}

export interface AuditCheck {
  intact: boolean;
  /** Number of the oldest line that is kept. */
  firstSeq: number;
  lines: number;
  /** Number of the first line whose hash, number or columns do not fit; null when the chain is intact. */
  brokenAt: number | null;
  lastSeq: number;
  lastHash: string;
}

/** Lines read per query while the chain is checked. */
const CHECK_PAGE = 2000;
/** Lines per commit; further lines wait for the next commit. */
const BATCH_MAX = 500;
/** Lines pruned per commit, so that other writers get their turn in between. */
const PRUNE_MAX = 5000;

/** Canonical JSON with sorted members: the hash of a line covers this text. */
const textOf = (entry: AuditEntry): string =>
  JSON.stringify({
    accountId: entry.accountId,
    action: entry.action,
    actor: entry.actor,
    actorName: entry.actorName,
    actorType: entry.actorType,
    authMethod: entry.authMethod,
    keyId: entry.keyId,
    outcome: entry.outcome,
    requestId: entry.requestId,
    sourceAddress: entry.sourceAddress,
    status: entry.status,
    target: entry.target,
    workspace: entry.workspace,
  } satisfies AuditEntry);

const HEAD = fixedQuery<{ seq: number; hash: string }>({
  sqlite: "SELECT seq, hash FROM audit_head WHERE id = 1",
  postgres: "SELECT seq, hash FROM audit_head WHERE id = 1 FOR UPDATE",
});
const MOVE_HEAD = fixedQuery("UPDATE audit_head SET seq = ?, hash = ? WHERE id = 1");
const INSERT = fixedQuery(
  `INSERT INTO audit_log (seq, at, account_id, workspace, actor, action, outcome, entry, hash)
   VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
);

export type Audit = ReturnType<typeof createAudit>;

export function createAudit({ database, clock, key: keyBytes }: { database: Database; clock: Clock; key: Buffer }) {
  const key = createSecretKey(keyBytes);
  const hashOf = (before: string, seq: number, at: number, entry: string): string =>
    createHmac("sha256", key).update(`${before}\n${seq}\n${at}\n${entry}`).digest("base64url");
  const sealOf = (seq: number, hash: string): string =>
    createHmac("sha256", key).update(`base\n${seq}\n${hash}`).digest("base64url");
  let waiting: { entry: AuditEntry; done(): void; failed(error: unknown): void }[] = [];
  let isWriting = false;

  /** Writes waiting lines in batches. Lines recorded during a commit share the next one. */
  async function writeAll(): Promise<void> {
    while (waiting.length > 0) {
      const batch = waiting.slice(0, BATCH_MAX);
      waiting = waiting.slice(BATCH_MAX);
      try {
        await database.write(({ queries }) =>
          append(
            queries,
            batch.map(({ entry }) => entry),
          ),
        );
        for (const { done } of batch) done();
      } catch (error) {
        for (const { failed } of batch) failed(error);
      }
    }
    isWriting = false;
  }

  async function append(queries: Queries, entries: readonly AuditEntry[]): Promise<void> {
    const { dialect } = database;
    const head = await HEAD.first(queries, dialect, []);
    if (!head) throw new Error("the audit log has lost its head");
    let { seq, hash } = head;
    const at = clock.now();
    const rows = entries.map((one): AuditRow => {
      const entry = textOf(one);
      seq = Number(seq) + 1;
      hash = hashOf(hash, seq, at, entry);
      const { accountId: account_id, workspace, actor, action, outcome } = one;
      return { seq, at, account_id, workspace, actor, action, outcome, entry, hash };
    });
    // One INSERT for all lines on PostgreSQL, to save round trips. SQLite has none, so it runs a prepared statement per
    // line.
    if (dialect === "postgres") await queries.insertInto("audit_log").values(rows).execute();
    else for (const row of rows) await INSERT.run(queries, dialect, Object.values(row));
    await MOVE_HEAD.run(queries, dialect, [seq, hash]);
  }

  return {
    /** Returns when the line is durable. */
    record(entry: AuditEntry): Promise<void> {
      // SQLite's batcher already shares commits between writers.
      if (database.dialect === "sqlite") return database.write(async (tx) => tx.share(append, entry));
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      waiting.push({ entry, done: resolve, failed: reject });
      if (!isWriting) {
        isWriting = true;
        void writeAll(); // never rejects: each waiting caller gets its own error
      }
      return promise;
    },

    /**
     * Adds the line to the caller's transaction. Returns false on PostgreSQL, where the head of the chain would stay
     * locked until that transaction ends and other writers would wait.
     */
    enlist(tx: Transaction, entry: AuditEntry): boolean {
      if (database.dialect === "postgres") return false;
      tx.share(append, entry);
      return true;
    },

    /**
     * Adds the line to the caller's transaction on every database. For rare changes: on PostgreSQL other writers of
     * lines wait until the transaction ends.
     */
    within(tx: Transaction, entry: AuditEntry): void {
      tx.share(append, entry);
    },

    /** Newest first. */
    async list(filter: AuditFilter): Promise<AuditLine[]> {
      let rows = database.read.selectFrom("audit_log").selectAll();
      if (filter.workspace !== undefined) rows = rows.where("workspace", "=", filter.workspace);
      if (filter.accountId !== undefined) rows = rows.where("account_id", "=", filter.accountId);
      if (filter.actor !== undefined) rows = rows.where("actor", "=", filter.actor);
      if (filter.action !== undefined) rows = rows.where("action", "=", filter.action);
      if (filter.outcome !== undefined) rows = rows.where("outcome", "=", filter.outcome);
      if (filter.from !== undefined) rows = rows.where("at", ">=", filter.from);
      if (filter.to !== undefined) rows = rows.where("at", "<", filter.to);
      if (filter.beforeSeq !== undefined) rows = rows.where("seq", "<", filter.beforeSeq);
      return (await rows.orderBy("seq", "desc").limit(filter.limit).execute()).map(fromRow);
    },

    /** Removes lines older than `olderThan`, at most PRUNE_MAX per call; returns the number of removed lines. */
    async prune(olderThan: number): Promise<number> {
      return database.write(async ({ queries }) => {
        const [base, head] = await ends(queries);
        const next = await queries
          .selectFrom("audit_log")
          .select("seq")
          .where("at", ">=", olderThan)
          .orderBy("seq")
          .limit(1)
          .executeTakeFirst();
        // The clock may have been set back: prune only lines before the first line that is young enough.
        const last = Math.min(Number(next?.seq ?? Number(head.seq) + 1) - 1, base.seq + PRUNE_MAX);
        const line = await queries.selectFrom("audit_log").select("hash").where("seq", "=", last).executeTakeFirst();
        if (last <= base.seq || !line) return 0;
        const seal = sealOf(last, line.hash);
        await queries.updateTable("audit_base").set({ seq: last, hash: line.hash, seal }).where("id", "=", 1).execute();
        await queries.deleteFrom("audit_log").where("seq", "<=", last).execute();
        return last - base.seq;
      });
    },

    /** Verifies the whole chain. */
    async check(): Promise<AuditCheck> {
      const [base, head] = await ends(database.read);
      let { seq, hash } = base;
      const end = Number(head.seq);
      const found = (brokenAt: number | null): AuditCheck => ({
        intact: brokenAt === null,
        firstSeq: base.seq + 1,
        lines: seq - base.seq,
        brokenAt,
        lastSeq: seq,
        lastHash: hash,
      });
      if (seq > 0 && base.seal !== sealOf(seq, hash)) return found(seq);
      while (seq < end) {
        const rows = await database.read
          .selectFrom("audit_log")
          .selectAll()
          .where("seq", ">", seq)
          .where("seq", "<=", end)
          .orderBy("seq")
          .limit(CHECK_PAGE)
          .execute();
        if (rows.length === 0) return found(seq + 1);
        for (const row of rows) {
          const at = Number(row.at);
          const isNext = Number(row.seq) === seq + 1 && isFaithful(row);
          if (!isNext || row.hash !== hashOf(hash, seq + 1, at, row.entry)) return found(seq + 1);
          seq += 1;
          hash = row.hash;
        }
      }
      return found(hash === head.hash ? null : seq);
    },
  };
}

/** The base (last pruned line) and the head (last line) of the chain. */
async function ends(queries: Queries) {
  const base = await queries.selectFrom("audit_base").selectAll().where("id", "=", 1).executeTakeFirstOrThrow();
  const head = await queries.selectFrom("audit_head").selectAll().where("id", "=", 1).executeTakeFirstOrThrow();
  return [{ ...base, seq: Number(base.seq) }, head] as const;
}

/** True when the filter columns agree with the text that the hash covers. */
function isFaithful({ entry, account_id, workspace, actor, action, outcome }: AuditRow): boolean {
  const said = JSON.parse(entry) as AuditEntry;
  return (
    said.accountId === account_id &&
    said.workspace === workspace &&
    said.actor === actor &&
    said.action === action &&
    said.outcome === outcome
  );
}

const fromRow = ({ seq, at, hash, entry }: AuditRow): AuditLine => ({
  ...(JSON.parse(entry) as AuditEntry),
  seq: Number(seq),
  at: Number(at),
  hash,
});
