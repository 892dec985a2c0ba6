/** Executions and tasks as clients see them. */
import { toIso } from "../../lib/time/clock.ts";
import { TRIGGER_CAUSE } from "../../store/executions/callback.ts";
import type { ExecutionRow, TaskRow, TaskStatus } from "../../store/executions/execution.ts";
import type { ExecutionWire, TaskWire } from "./operations.ts";

const VALUE_MASK = "***";

export function executionToWire(
  row: ExecutionRow,
  { envNames, region }: { envNames: readonly string[]; region: string },
): ExecutionWire {
  const { memory_override: memory, started_at: startedAt, completed_at: completedAt, expires_at: expiredAt } = row;
  return {
    metadata: {
      id: row.id,
      job: row.job,
      workspace: row.workspace,
      cluster: region,
      revision: row.revision,
      ...(row.cause.startsWith(TRIGGER_CAUSE) ? { trigger: row.cause.slice(TRIGGER_CAUSE.length) } : {}),
      createdAt: toIso(row.created_at),
      updatedAt: toIso(row.updated_at),
      ...(startedAt === null ? {} : { startedAt: toIso(startedAt) }),
      ...(completedAt === null ? {} : { completedAt: toIso(completedAt) }),
      ...(expiredAt === null ? {} : { expiredAt: toIso(expiredAt) }),
    },
    spec: {
      ...(envNames.length === 0
        ? {}
        : { envOverride: JSON.stringify(Object.fromEntries(envNames.map((name) => [name, VALUE_MASK]))) }),
      ...(memory === null ? {} : { memoryOverride: memory }),
      parallelism: row.parallelism,
      timeout: row.timeout_s,
    },
    status: row.status,
    stats: {
      total: row.total,
      success: row.success,
      failure: row.failure,
      cancelled: row.cancelled,
      retried: row.retried,
      running: row.running,
    },
  };
}

const STATUS_OF: Record<TaskStatus, TaskWire["status"]> = {
  pending: "pending",
  running: "running",
  retrying: "reconciling",
  succeeded: "succeeded",
  failed: "failed",
  cancelled: "cancelled",
};

/** Tasks by their index. A task that never started has no row. */
export function tasksToWire(execution: ExecutionRow, rows: readonly TaskRow[], places: readonly number[]): TaskWire[] {
  const byIndex = new Map(rows.map((row) => [row.idx, row]));
  return places.map((place) => taskToWire(execution, place, byIndex.get(place)));
}

function taskToWire(execution: ExecutionRow, index: number, row: TaskRow | undefined): TaskWire {
  const cancelled = execution.status === "cancelling" || execution.completed_at !== null;
  const updatedAt = row?.updated_at ?? (cancelled ? execution.updated_at : execution.created_at);
  return {
    metadata: {
      name: String(index),
      createdAt: toIso(execution.created_at),
      ...(row ? { scheduledAt: toIso(row.scheduled_at) } : {}),
      ...(row?.started_at ? { startedAt: toIso(row.started_at) } : {}),
      ...(row?.completed_at ? { completedAt: toIso(row.completed_at) } : {}),
      updatedAt: toIso(updatedAt),
    },
    spec: { maxRetries: execution.max_retries, timeout: `${execution.timeout_s}s` },
    status: row ? STATUS_OF[row.status] : cancelled ? "cancelled" : "pending",
    conditions: row ? conditionsOf(row) : [],
  };
}

function conditionsOf(row: TaskRow): TaskWire["conditions"] {
  if (row.status === "succeeded")
    return [condition("CONDITION_SUCCEEDED", "", `Attempt ${row.attempt} ended with exit code 0.`, "INFO")];
  if (row.reason === null) return [];
  const state = row.status === "failed" ? "CONDITION_FAILED" : "CONDITION_RECONCILING";
  return [condition(state, row.reason, row.message ?? "", row.status === "failed" ? "ERROR" : "WARNING")];
}

const condition = (state: string, reason: string, message: string, severity: string) => ({
  type: "Completed",
  state,
  reason,
  executionReason: reason,
  message,
  severity,
});
