/** The fixed SQL statements of the task queue; see queue.ts. */
import { fixedQuery } from "../database/database.ts";
import type { ExecutionRow } from "./execution.ts";

export const LOCKED = fixedQuery<ExecutionRow>({
  sqlite: "SELECT * FROM executions WHERE id = ?",
  postgres: "SELECT * FROM executions WHERE id = ? FOR UPDATE",
});

export const SETTLE = fixedQuery(
  `UPDATE executions SET status = ?, next_index = ?, running = ?, retrying = ?, success = ?, failure = ?, cancelled = ?,
    retried = ?, timed_out = ?, started_at = ?, completed_at = ?, expires_at = ?, updated_at = ? WHERE id = ?`,
);

const FRESH_COLUMNS = `(execution_id, idx, status, attempt, failures, holder, lease_until, next_at, workload, scheduled_at,
  started_at, completed_at, updated_at, exit_code, reason, message)`;
/** One row for each index; a workload is named after its execution, index and attempt. */
const FRESH_VALUES = `'running', 1, 0, ?, ?, 0, ? || '-' || each.idx || '-1', ?, NULL, NULL, ?, NULL, NULL, NULL`;
export const FRESH = fixedQuery({
  sqlite: `INSERT INTO tasks ${FRESH_COLUMNS} SELECT ?, each.idx, ${FRESH_VALUES} FROM (SELECT value AS idx FROM json_each(?)) each`,
  postgres: `INSERT INTO tasks ${FRESH_COLUMNS} SELECT ?, each.idx, ${FRESH_VALUES}
    FROM (SELECT CAST(value AS BIGINT) AS idx FROM json_array_elements_text(CAST(? AS JSON))) each`,
});

/** JSON pairs as rows: an index, and the time of its start or null. */
const PAIRS = {
  sqlite: "(SELECT json_extract(value, '$[0]') AS idx, json_extract(value, '$[1]') AS at FROM json_each(?)) each",
  postgres: `(SELECT CAST(value->>0 AS BIGINT) AS idx, CAST(value->>1 AS BIGINT) AS at
    FROM json_array_elements(CAST(? AS JSON))) each`,
};
const SUCCEED = `UPDATE tasks SET status = 'succeeded', exit_code = 0, reason = NULL, message = NULL, lease_until = 0,
  next_at = 0, completed_at = ?, updated_at = ?, started_at = COALESCE(tasks.started_at, each.at)`;
/** The bounds make the planner read only a range of a long execution, whatever its statistics say. */
const IN_BOUNDS = "tasks.idx BETWEEN ? AND ? AND tasks.idx = each.idx";
/** All reported tasks have the same attempt number. */
const SUCCEEDED_WHERE = `WHERE tasks.execution_id = ? AND tasks.attempt = ? AND tasks.status = 'running' AND ${IN_BOUNDS}`;
export const SUCCEEDED = fixedQuery({
  sqlite: `${SUCCEED} FROM ${PAIRS.sqlite} ${SUCCEEDED_WHERE}`,
  postgres: `${SUCCEED} FROM ${PAIRS.postgres} ${SUCCEEDED_WHERE}`,
});

const START = "UPDATE tasks SET started_at = each.at, updated_at = ?";
const STARTED_WHERE = `WHERE tasks.execution_id = ? AND ${IN_BOUNDS} AND tasks.attempt = each.attempt
  AND tasks.status = 'running' RETURNING tasks.idx`;
export const STARTED = fixedQuery<{ idx: number }>({
  sqlite: `${START} FROM (SELECT json_extract(value, '$[0]') AS idx, json_extract(value, '$[1]') AS attempt,
    json_extract(value, '$[2]') AS at FROM json_each(?)) each ${STARTED_WHERE}`,
  postgres: `${START} FROM (SELECT CAST(value->>0 AS BIGINT) AS idx, CAST(value->>1 AS BIGINT) AS attempt,
    CAST(value->>2 AS BIGINT) AS at FROM json_array_elements(CAST(? AS JSON))) each ${STARTED_WHERE}`,
});

/** Locks the execution before its tasks, as every other statement does, so that there are no deadlocks. */
export const CLAIM_AT_ONCE = fixedQuery<{ first: number; n: number }>(`WITH held AS (
    SELECT id, next_index, LEAST(CAST(? AS BIGINT), total - next_index, parallelism - running) AS n FROM executions
    WHERE id = ? AND completed_at IS NULL AND status <> 'cancelling' AND retrying = 0 AND next_index < total
      AND running < parallelism FOR UPDATE
  ), moved AS (
    UPDATE executions SET next_index = held.next_index + held.n, running = executions.running + held.n,
      status = 'running', started_at = COALESCE(executions.started_at, CAST(? AS BIGINT)), updated_at = ?
    FROM held WHERE executions.id = held.id RETURNING held.id, held.next_index AS first, held.n AS n
  ), fresh AS (
    INSERT INTO tasks ${FRESH_COLUMNS}
    SELECT moved.id, each.idx, 'running', 1, 0, ?, CAST(? AS BIGINT), 0, moved.id || '-' || each.idx || '-1',
      CAST(? AS BIGINT), NULL, NULL, CAST(? AS BIGINT), NULL, NULL, NULL
    FROM moved, generate_series(moved.first, moved.first + moved.n - 1) AS each (idx)
  ) SELECT first, n FROM moved`);

/** Never ends an execution: that takes the full transaction. */
export const REPORT_AT_ONCE = fixedQuery<{ held: number; n: number }>(`WITH held AS (
    SELECT id FROM executions WHERE id = ? AND retrying = 0 AND status = 'running'
      AND success + failure + cancelled + CAST(? AS BIGINT) < total FOR UPDATE
  ), done AS (
    ${SUCCEED} FROM held, ${PAIRS.postgres}
    WHERE tasks.execution_id = held.id AND tasks.attempt = ? AND tasks.status = 'running' AND ${IN_BOUNDS}
    RETURNING 1
  ), settled AS (
    UPDATE executions SET running = running - ended.n, success = success + ended.n, updated_at = ?
    FROM (SELECT COUNT(*) AS n FROM done) ended WHERE executions.id = ? AND ended.n > 0
  ) SELECT (SELECT COUNT(*) FROM held) AS held, (SELECT COUNT(*) FROM done) AS n`);
