/**
 * The audit log: append-only, and chained, so that a line that was changed, removed or slipped in shows. Each line's
 * hash covers the one before it and is keyed, so whoever can only write to the database cannot forge one. Old lines may
 * be let go from the front: the place and hash of the last one that went is kept, sealed with the same key.
 */
import { createHmac, createSecretKey } from "node:crypto";
import type { Clock } from "../lib/time/clock.ts";
import { type Database, fixedQuery, type Queries, type Transaction } from "./database/database.ts";
import type { AuditRow } from "./database/schema.ts";

export interface AuditEntry {
  actor: string;
  actorType: string;
  /** How people know the actor. */
  actorName: string;
  authMethod: string;
  keyId: string | null;
  /** An operation's id, or what else happened. */
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
  /** The first that is kept. */
  firstSeq: number;
  lines: number;
  /** The first line that is wrong. */
  brokenAt: number | null;
  lastSeq: number;
  lastHash: string;
}

/** Lines that are read at once when the chain is checked. */
const CHECK_PAGE = 2000;
/** Lines of one commit; the rest waits for the next. */
const BATCH_MAX = 500;
/** Old lines that go in one commit, so that others get their turn in between. */
const PRUNE_MAX = 5000;

/** Canonical JSON, its members in the order of their names: the text of a line is what its hash covers. */
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

  /** Those that come while a commit runs share the next one. */
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
    // One text for any number of lines where it costs no round trip.
    if (dialect === "postgres") await queries.insertInto("audit_log").values(rows).execute();
    else for (const row of rows) await INSERT.run(queries, dialect, Object.values(row));
    await MOVE_HEAD.run(queries, dialect, [seq, hash]);
  }

  return {
    /** Returns when the line is durable. */
    record(entry: AuditEntry): Promise<void> {
      // Writers of SQLite share commits by themselves, with everybody else's.
      if (database.dialect === "sqlite") return database.write(async (tx) => tx.share(append, entry));
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      waiting.push({ entry, done: resolve, failed: reject });
      if (!isWriting) {
        isWriting = true;
        void writeAll(); // ends by itself and tells each of those who wait
      }
      return promise;
    },

    /**
     * Puts the line into a transaction of the caller's. False where that would make others wait for its end: on
     * PostgreSQL the head of the chain would be locked until then.
     */
    enlist(tx: Transaction, entry: AuditEntry): boolean {
      if (database.dialect === "postgres") return false;
      tx.share(append, entry);
      return true;
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

    /** Lets the lines go that are older, some at a time; returns how many went. */
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
        // The clock may have been set back: what stands before a younger line goes, nothing behind it.
        const last = Math.min(Number(next?.seq ?? Number(head.seq) + 1) - 1, base.seq + PRUNE_MAX);
        const line = await queries.selectFrom("audit_log").select("hash").where("seq", "=", last).executeTakeFirst();
        if (last <= base.seq || !line) return 0;
        const seal = sealOf(last, line.hash);
        await queries.updateTable("audit_base").set({ seq: last, hash: line.hash, seal }).where("id", "=", 1).execute();
        await queries.deleteFrom("audit_log").where("seq", "<=", last).execute();
        return last - base.seq;
      });
    },

    /** Walks the whole chain. */
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

/** What stands before the first line, and what the last one is. */
async function ends(queries: Queries) {
  const base = await queries.selectFrom("audit_base").selectAll().where("id", "=", 1).executeTakeFirstOrThrow();
  const head = await queries.selectFrom("audit_head").selectAll().where("id", "=", 1).executeTakeFirstOrThrow();
  return [{ ...base, seq: Number(base.seq) }, head] as const;
}

/** The columns that filters look at say the same as the text that the hash covers. */
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
