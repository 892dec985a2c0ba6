/**
 * Deliveries: background work that no client waits for. A delivery is claimed under a lease and stays in the table
 * until it is reported done, so another server takes over from one that dies. It is made at least once, and never by
 * two servers at a time.
 */
import { sql } from "kysely";
import { uuidv7 } from "../../lib/ids.ts";
import type { SealedBox } from "../../lib/sealed-box.ts";
import type { Clock } from "../../lib/time/clock.ts";
import type { Database, Transaction } from "../database/database.ts";
import type { Delivery, DeliveryDraft, DeliveryPhase, DeliveryRow } from "./delivery.ts";

/**
 * Deliveries waiting in one workspace. A sender that is faster than its workload is refused instead of filling the
 * disk.
 */
const WAITING_MAX = 10_000;
const WAITING_BYTES_MAX = 1024 ** 3;

/** Changes of deliveries; the key is the phase. */
export const DELIVERY_TOPIC = "delivery";

export interface ClaimOptions {
  holder: string;
  leaseMs: number;
  limit: number;
  /** Workloads that already have as many deliveries in progress on this server as they may have. */
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

  /** The row of a delivery that the caller still holds, locked. */
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
    /** Returns false when the workspace has too many deliveries waiting. */
    add: (draft: DeliveryDraft): Promise<boolean> => {
      const row = rowOf(draft);
      return database.write((tx) => insert(tx, row, draft));
    },

    addIn: (tx: Transaction, draft: DeliveryDraft): Promise<boolean> => insert(tx, rowOf(draft), draft),

    /** Claims due deliveries, oldest first. */
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

    /** Whether an unclaimed delivery of this phase is due. Only reads. */
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

    /** Renews the leases of these deliveries; returns the ids that the holder still holds. */
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

    /** Removes a delivery that was made or given up. */
    finish: (held: Held): Promise<boolean> => change(held, remove),

    /** Schedules another try. `failed` counts it as a failure; a server that stops passes false. */
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

    /** Turns the delivery into one of the next phase. */
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

    /** Releases the deliveries of a server that is gone: those whose holder begins with `prefix`. */
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
