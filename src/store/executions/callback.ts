/** The callback that reports the end of an execution started by a trigger. */
import { SECOND_MS, toIso } from "../../lib/time/clock.ts";
import type { Transaction } from "../database/database.ts";
import type { Deliveries } from "../deliveries/deliveries.ts";
import { CALLBACK_WITHIN_MS, type CallbackPayload } from "../deliveries/delivery.ts";
import type { ExecutionRow } from "./execution.ts";

/** Prefix of the cause of an execution that a trigger started; the trigger's id follows. */
export const TRIGGER_CAUSE = "trigger/";

/** HTTP status codes that an asynchronous request would have reported for these results. */
const STATUS_CODES = { succeeded: 200, failed: 500 };

/** Adds the callback in the transaction that ends the execution, so that neither happens without the other. */
export const executionCallback =
  (deliveries: Pick<Deliveries, "addIn">) =>
  async (tx: Transaction, row: ExecutionRow): Promise<void> => {
    if (!row.cause.startsWith(TRIGGER_CAUSE)) return;
    await deliveries.addIn(tx, {
      workspace: row.workspace,
      kind: "job",
      uid: row.job_uid,
      triggerId: row.cause.slice(TRIGGER_CAUSE.length),
      cause: "execution",
      phase: "callback",
      payload: payloadOf(row),
      withinMs: CALLBACK_WITHIN_MS,
      // The callback was promised when the execution was accepted.
      unbounded: true,
    });
  };

function payloadOf(row: ExecutionRow): CallbackPayload {
  const endedAt = row.completed_at ?? row.updated_at;
  const body = JSON.stringify({
    executionId: row.id,
    job: row.job,
    workspace: row.workspace,
    status: row.status,
    stats: {
      total: row.total,
      success: row.success,
      failure: row.failure,
      cancelled: row.cancelled,
      retried: row.retried,
    },
    createdAt: toIso(row.created_at),
    completedAt: toIso(endedAt),
  });
  return {
    status_code: row.status === "succeeded" ? STATUS_CODES.succeeded : STATUS_CODES.failed,
    response_body: body,
    response_length: Buffer.byteLength(body),
    timestamp: Math.floor(endedAt / SECOND_MS),
    request_id: row.id,
  };
}
