import assert from "node:assert/strict";

/** A look takes a command inside a workload, and most states come with the first few looks. */
const LOOKS_MAX = 100;

/** Looks until the state is there. A state that does not come fails the test with the source of the look. */
export async function until(holds: () => Promise<boolean>): Promise<void> {
  for (let looks = 0; !(await holds()); looks++)
    assert.ok(looks < LOOKS_MAX, `not true after ${LOOKS_MAX} looks: ${holds}`);
}
