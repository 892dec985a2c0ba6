import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";

/** Bounds the wait for a state that never comes. States come within moments, and some with a task that runs every few seconds. */
const WAIT_MS = 120_000;
/** Between two looks. Most looks run a command in a workload, which costs more CPU time than the state that they wait for. */
const LOOK_MS = 50;

/** Looks until the state is there. A state that does not come fails the test with the source of the look. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  for (const end = Date.now() + WAIT_MS; !(await holds()); await pause(LOOK_MS))
    assert.ok(Date.now() < end, `not true within ${WAIT_MS / 1000} s: ${holds}`);
}
