/**
 * Conversations that agents remember: messages of one agent under an id that the client chose. Everything is bounded: a
 * long thread drops its oldest messages, an agent its least recently used threads, and every thread expires.
 */

import type { CursorCodec } from "../contract/cursor.ts";
import type { SealedBox } from "../lib/sealed-box.ts";
import type { Clock } from "../lib/time/clock.ts";
import type { Database, Queries, Transaction } from "./database/database.ts";
import type { ThreadRow } from "./database/schema.ts";

/** Messages kept per thread: more than any model reads of a conversation. */
export const THREAD_MESSAGES_MAX = 1000;
const THREAD_BYTES_MAX = 4 * 1024 * 1024;
/** Threads per agent. Clients choose the ids, perhaps a new one for every request. */
const THREADS_MAX = 10_000;
/** Messages read per query when a thread is trimmed. */
const TRIM_PAGE = 200;

export type Message = Record<string, unknown>;

export interface ThreadsDeps {
  database: Database;
  clock: Clock;
  box: SealedBox;
  cursors: CursorCodec;
}

export type Threads = ReturnType<typeof createThreads>;

export function createThreads({ database, clock, box, cursors }: ThreadsDeps) {
  const contextOf = (agentUid: string, threadId: string): string => `${agentUid}\0${threadId}`;

  /** The thread's row, locked. An expired thread starts empty. */
  async function open({ queries }: Transaction, agentUid: string, threadId: string): Promise<ThreadRow> {
    const now = clock.now();
    const fresh = { first_seq: 0, next_seq: 0, bytes: 0, created_at: now, updated_at: now, expires_at: now };
    const made = await queries
      .insertInto("threads")
      .values({ agent_uid: agentUid, thread_id: threadId, ...fresh })
      .onConflict((conflict) => conflict.doNothing())
      .executeTakeFirst();
    if (Number(made.numInsertedOrUpdatedRows ?? 0) > 0) await makeRoom(queries, agentUid);
    const found = threadQuery(queries, agentUid, threadId);
    const row = await (database.dialect === "postgres" ? found.forUpdate() : found).executeTakeFirstOrThrow();
    if (row.expires_at > now) return row;
    await deleteMessages(queries, agentUid, threadId, row.next_seq);
    return { ...row, ...fresh, first_seq: row.next_seq, next_seq: row.next_seq };
  }

  return {
    /** Appends to a thread, which then expires `keepMs` from now; returns its row. */
    async append(agentUid: string, threadId: string, messages: readonly Message[], keepMs: number): Promise<ThreadRow> {
      const sealed = messages.map((message) => box.seal(JSON.stringify(message), contextOf(agentUid, threadId)));
      return database.write(async (tx) => {
        const row = await open(tx, agentUid, threadId);
        const values = sealed.map((text, index) => ({
          agent_uid: agentUid,
          thread_id: threadId,
          seq: row.next_seq + index,
          sealed: text,
          bytes: text.length,
        }));
        await tx.queries.insertInto("thread_messages").values(values).execute();
        const now = clock.now();
        const longer = {
          ...row,
          next_seq: row.next_seq + values.length,
          bytes: values.reduce((sum, { bytes }) => sum + bytes, row.bytes),
          updated_at: now,
          expires_at: now + keepMs,
        };
        const next = { ...longer, ...(await trimmed(tx.queries, longer)) };
        await tx.queries
          .updateTable("threads")
          .set(next)
          .where("agent_uid", "=", agentUid)
          .where("thread_id", "=", threadId)
          .execute();
        return next;
      });
    },

    /** The newest messages of a thread in chronological order; null when there is no such thread. */
    async read(
      agentUid: string,
      threadId: string,
      limit: number,
    ): Promise<{ thread: ThreadRow; messages: Message[] } | null> {
      const thread = await threadQuery(database.read, agentUid, threadId).executeTakeFirst();
      if (!thread || thread.expires_at <= clock.now()) return null;
      const rows = await database.read
        .selectFrom("thread_messages")
        .select("sealed")
        .where("agent_uid", "=", agentUid)
        .where("thread_id", "=", threadId)
        .orderBy("seq", "desc")
        .limit(limit)
        .execute();
      const context = contextOf(agentUid, threadId);
      return { thread, messages: rows.reverse().map(({ sealed }) => JSON.parse(box.open(sealed, context)) as Message) };
    },

    /** Threads of an agent, ordered by id. */
    async list(agentUid: string, { limit, cursor }: { limit: number; cursor: string | null }) {
      const bound = { list: "threads", agentUid };
      const [after] = cursor ? cursors.decode(cursor, bound, clock.now()) : [];
      const found = await database.read
        .selectFrom("threads")
        .selectAll()
        .where("agent_uid", "=", agentUid)
        .where("expires_at", ">", clock.now())
        .where("thread_id", ">", typeof after === "string" ? after : "")
        .orderBy("thread_id")
        .limit(limit + 1)
        .execute();
      const items = found.slice(0, limit);
      const last = items.at(-1);
      const hasMore = found.length > limit && last !== undefined;
      return { items, hasMore, nextCursor: hasMore ? cursors.encode([last.thread_id], bound, clock.now()) : "" };
    },

    async countOf(agentUid: string): Promise<number> {
      const row = await database.read
        .selectFrom("threads")
        .select((eb) => eb.fn.countAll<number>().as("n"))
        .where("agent_uid", "=", agentUid)
        .where("expires_at", ">", clock.now())
        .executeTakeFirst();
      return Number(row?.n ?? 0);
    },

    /** Returns false when there was no such thread. */
    remove: (agentUid: string, threadId: string): Promise<boolean> =>
      database.write(async ({ queries }) => deleteThread(queries, agentUid, threadId)),

    /** Removes expired threads, at most `limit` per call; returns their number. */
    forgetExpired: (limit: number): Promise<number> =>
      database.write(async ({ queries }) => {
        const old = await queries
          .selectFrom("threads")
          .select(["agent_uid", "thread_id"])
          .where("expires_at", "<=", clock.now())
          .limit(limit)
          .execute();
        for (const { agent_uid, thread_id } of old) await deleteThread(queries, agent_uid, thread_id);
        return old.length;
      }),
  };
}

const threadQuery = (queries: Queries, agentUid: string, threadId: string) =>
  queries.selectFrom("threads").selectAll().where("agent_uid", "=", agentUid).where("thread_id", "=", threadId);

async function deleteThread(queries: Queries, agentUid: string, threadId: string): Promise<boolean> {
  const gone = await queries
    .deleteFrom("threads")
    .where("agent_uid", "=", agentUid)
    .where("thread_id", "=", threadId)
    .executeTakeFirst();
  await deleteMessages(queries, agentUid, threadId, Number.MAX_SAFE_INTEGER);
  return Number(gone.numDeletedRows) > 0;
}

async function deleteMessages(queries: Queries, agentUid: string, threadId: string, beforeSeq: number): Promise<void> {
  await queries
    .deleteFrom("thread_messages")
    .where("agent_uid", "=", agentUid)
    .where("thread_id", "=", threadId)
    .where("seq", "<", beforeSeq)
    .execute();
}

/** Drops the oldest messages of a thread that is too long; returns the new bounds. The newest message always stays. */
async function trimmed(queries: Queries, row: ThreadRow): Promise<Pick<ThreadRow, "first_seq" | "bytes">> {
  let { first_seq, bytes } = row;
  const tooLong = (): boolean =>
    row.next_seq - first_seq > 1 && (row.next_seq - first_seq > THREAD_MESSAGES_MAX || bytes > THREAD_BYTES_MAX);
  while (tooLong()) {
    const oldest = await queries
      .selectFrom("thread_messages")
      .select(["seq", "bytes"])
      .where("agent_uid", "=", row.agent_uid)
      .where("thread_id", "=", row.thread_id)
      .where("seq", ">=", first_seq)
      .orderBy("seq")
      .limit(TRIM_PAGE)
      .execute();
    for (const message of oldest) {
      if (!tooLong()) break;
      first_seq = message.seq + 1;
      bytes -= message.bytes;
    }
  }
  if (first_seq !== row.first_seq) await deleteMessages(queries, row.agent_uid, row.thread_id, first_seq);
  return { first_seq, bytes };
}

async function makeRoom(queries: Queries, agentUid: string): Promise<void> {
  const counted = await queries
    .selectFrom("threads")
    .select((eb) => eb.fn.countAll<number>().as("n"))
    .where("agent_uid", "=", agentUid)
    .executeTakeFirst();
  if (Number(counted?.n ?? 0) <= THREADS_MAX) return;
  const oldest = await queries
    .selectFrom("threads")
    .select("thread_id")
    .where("agent_uid", "=", agentUid)
    .orderBy("updated_at")
    .limit(1)
    .executeTakeFirst();
  if (oldest) await deleteThread(queries, agentUid, oldest.thread_id);
}

export async function removeThreads(queries: Queries, agentUid: string): Promise<void> {
  await queries.deleteFrom("thread_messages").where("agent_uid", "=", agentUid).execute();
  await queries.deleteFrom("threads").where("agent_uid", "=", agentUid).execute();
}
