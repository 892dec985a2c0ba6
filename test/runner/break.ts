/**
 * Loaded into every test file by `node test/run.ts --break=SEED`: assertions fail by chance, so that each test shows
 * what it leaves open when it fails. The run is red; what counts is that every file ends by itself and leaves nothing.
 */
import assert from "node:assert/strict";

const CHANCE = 0.15;

let state = Number(process.env.BERTH_TEST_BREAK) || 1;
const random = (): number => {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return state / 2 ** 32;
};

const names = ["equal", "deepEqual", "notEqual", "match", "doesNotMatch", "ok", "rejects", "throws"] as const;
for (const name of names) {
  const real = assert[name] as (...values: unknown[]) => unknown;
  Object.assign(assert, {
    [name]: (...values: unknown[]): unknown => {
      if (isOurs() && random() < CHANCE) throw new Error(`broken on purpose (${name})`);
      return real(...values);
    },
  });
}

/** The packages that the platform uses check themselves with the same module. */
function isOurs(): boolean {
  const [, , , caller = ""] = (new Error("where").stack ?? "").split("\n");
  return !caller.includes("node_modules");
}
