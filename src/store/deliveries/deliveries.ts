/**
 * What the platform owes somebody who does not wait. A delivery is taken under a lease and stays until it is reported
 * done, so a server that dies leaves it to the next one: it is made at least once, and never by two at a time.
 */
import { sql } from "kysely";
import { uuidv7 } from "../../lib/ids.ts";
import type { SealedBox } from "../../lib/sealed-box.ts";
import type { Clock } from "../../lib/time/clock.ts";
import type { Database, Transaction } from "../database/database.ts";
import type { Delivery, DeliveryDraft, DeliveryPhase, DeliveryRow } from "./delivery.ts";

/** Waiting in one workspace at a time: a sender faster than its workload is told, rather than filling the disk. */
const WAITING_MAX = 10_000;
const WAITING_BYTES_MAX = 1024 ** 3;

/** The key is the phase. */
export const DELIVERY_TOPIC = "delivery";

export interface ClaimOptions {
  holder: string;
  leaseMs: number;
  limit: number;
  /** Workloads that have enough of them at this server. */
  exceptUids: readonly string[];
}

type Held = Pick<Delivery, "id" | "attempt">;

export type Deliveries = ReturnType<typeof createDeliveries>;

export function createDeliveries({ database, clock, box }: { database: Database; clock: Clock; box: SealedBox }) {
  const rowOf = (draft: DeliveryDraft): DeliveryRow => {
    const now = clock.now();
    const id = uuidv7(now);
    const sealed = box.seal(JSON.stringify(draft.payload), id);
    const { workspace, kind, uid, triggerId: trigger_id, cause, phase } = draft;
    const deadline_at = now + draft.withinMs;
    return {
      ...{ id, workspace, kind, uid, trigger_id, cause, phase, sealed, bytes: sealed.length },
      ...{ attempt: 0, failures: 0, holder: "", due_at: now, deadline_at, created_at: now },
    };
  };

  async function insert(tx: Transaction, row: DeliveryRow, { unbounded }: DeliveryDraft): Promise<boolean> {
    const max = unbounded ? Number.MAX_SAFE_INTEGER : WAITING_MAX;
    const bytesMax = unbounded ? Number.MAX_SAFE_INTEGER : WAITING_BYTES_MAX;
    const count = await tx.queries
      .insertInto("delivery_counts")
      .values({ workspace: row.workspace, waiting: 1, bytes: row.bytes })
      .onConflict((conflict) =>
        conflict
          .column("workspace")
          .doUpdateSet((eb) => ({
            waiting: eb("delivery_counts.waiting", "+", 1),
            bytes: eb("delivery_counts.bytes", "+", row.bytes),
          }))
          .where("delivery_counts.waiting", "<", max)
          .where("delivery_counts.bytes", "<", bytesMax),
      )
      .returning("waiting")
      .executeTakeFirst();
    if (!count) return false;
    await tx.queries.insertInto("deliveries").values(row).execute();
    tx.announce({ topic: DELIVERY_TOPIC, key: row.phase });
    return true;
  }

  /** The row of a delivery that is still ours, locked. */
  const heldRow = (tx: Transaction, { id, attempt }: Held) => {
    const row = tx.queries.selectFrom("deliveries").selectAll().where("id", "=", id).where("attempt", "=", attempt);
    return (database.dialect === "postgres" ? row.forUpdate() : row).executeTakeFirst();
  };

  async function remove(tx: Transaction, { id, workspace, bytes }: DeliveryRow): Promise<void> {
    await tx.queries.deleteFrom("deliveries").where("id", "=", id).execute();
    await tx.queries
      .updateTable("delivery_counts")
      .set((eb) => ({ waiting: eb("waiting", "-", 1), bytes: eb("bytes", "-", bytes) }))
      .where("workspace", "=", workspace)
      .execute();
  }

  const change = (held: Held, apply: (tx: Transaction, row: DeliveryRow) => Promise<void>): Promise<boolean> =>
    database.write(async (tx) => {
      const row = await heldRow(tx, held);
      if (row) await apply(tx, row);
      return row !== undefined;
    });

  return {
    /** False when too much waits in the workspace already. */
    add: (draft: DeliveryDraft): Promise<boolean> => {
      const row = rowOf(draft);
      return database.write((tx) => insert(tx, row, draft));
    },

    addIn: (tx: Transaction, draft: DeliveryDraft): Promise<boolean> => insert(tx, rowOf(draft), draft),

    /** Takes what is due, oldest first. */
    async claim(phase: DeliveryPhase, options: ClaimOptions): Promise<Delivery[]> {
      const { holder, leaseMs, limit, exceptUids } = options;
      const now = clock.now();
      const rows = await database.write(async ({ queries }) => {
        let due = queries
          .selectFrom("deliveries")
          .selectAll()
          .where("phase", "=", phase)
          .where("due_at", "<=", now)
          .orderBy("due_at")
          .limit(limit);
        if (exceptUids.length > 0) due = due.where("uid", "not in", exceptUids);
        const found = await (database.dialect === "postgres" ? due.forUpdate().skipLocked() : due).execute();
        if (found.length === 0) return found;
        await queries
          .updateTable("deliveries")
          .set((eb) => ({ attempt: eb("attempt", "+", 1), holder, due_at: now + leaseMs }))
          .where(
            "id",
            "in",
            found.map(({ id }) => id),
          )
          .execute();
        return found;
      });
      return rows.map(({ sealed, due_at: _due, holder: _holder, ...row }) => ({
        ...row,
        attempt: row.attempt + 1,
        payload: JSON.parse(box.open(sealed, row.id)) as unknown,
      }));
    },

    /** Whether anything of this phase is due that nobody holds: a look that costs no write. */
    async isDue(phase: DeliveryPhase): Promise<boolean> {
      const row = await database.read
        .selectFrom("deliveries")
        .select("id")
        .where("phase", "=", phase)
        .where("due_at", "<=", clock.now())
        .limit(1)
        .executeTakeFirst();
      return row !== undefined;
    },

    /** Keeps the leases of what this holder still works on; returns those that are still its own. */
    async renew(holder: string, ids: readonly string[], leaseMs: number): Promise<Set<string>> {
      const rows = await database.write(({ queries }) =>
        queries
          .updateTable("deliveries")
          .set({ due_at: clock.now() + leaseMs })
          .where("holder", "=", holder)
          .where("id", "in", ids)
          .returning("id")
          .execute(),
      );
      return new Set(rows.map(({ id }) => id));
    },

    /** It is made, or given up. */
    finish: (held: Held): Promise<boolean> => change(held, remove),

    /** It is tried again later; a failure counts, a server that stops does not. */
    retry: (held: Held, afterMs: number, failed: boolean): Promise<boolean> =>
      change(held, async (tx, { id, failures, phase }) => {
        const due_at = clock.now() + afterMs;
        await tx.queries
          .updateTable("deliveries")
          .set({ due_at, holder: "", failures: failures + (failed ? 1 : 0) })
          .where("id", "=", id)
          .execute();
        if (afterMs === 0) tx.announce({ topic: DELIVERY_TOPIC, key: phase });
      }),

    /** The next phase takes its place. */
    follow: (held: Held, phase: DeliveryPhase, payload: unknown, withinMs: number): Promise<boolean> => {
      const sealed = box.seal(JSON.stringify(payload), held.id);
      return change(held, async (tx, { id, bytes, workspace }) => {
        const due_at = clock.now();
        await tx.queries
          .updateTable("deliveries")
          .set({ phase, sealed, bytes: sealed.length, failures: 0, holder: "", due_at, deadline_at: due_at + withinMs })
          .where("id", "=", id)
          .execute();
        await tx.queries
          .updateTable("delivery_counts")
          .set((eb) => ({ bytes: eb("bytes", "+", sealed.length - bytes) }))
          .where("workspace", "=", workspace)
          .execute();
        tx.announce({ topic: DELIVERY_TOPIC, key: phase });
      });
    },

    /** What a server that is gone held: its holder began with this. */
    async release(prefix: string): Promise<void> {
      await database.write(({ queries }) =>
        queries
          .updateTable("deliveries")
          .set({ holder: "", due_at: clock.now() })
          .where(sql`substr(holder, 1, ${prefix.length})`, "=", prefix)
          .execute(),
      );
    },

    onChange: (listener: (phase: string) => void): (() => void) =>
      database.onChange(({ topic, key }) => {
        if (topic === DELIVERY_TOPIC || topic === "resync") listener(key);
      }),
  };
}
