import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "../../test/properties.ts";
import { type CappedPolicy, createTokenBudget, MemoryBudgetState, OUTPUT_RESERVE_DEFAULT } from "./token-budget.ts";
import { readTokenLimits, type TokenLimits, windowAt } from "./token-window.ts";

const OFF: TokenLimits = {
  granularity: "hour",
  step: 1,
  input: 0,
  output: 0,
  total: 0,
  ratioInputOverOutput: 0,
  requests: 0,
  repeats: 0,
  per: "policy",
};
const policy = (limits: Partial<TokenLimits>, name = "cap"): CappedPolicy => ({
  key: `acme/${name}`,
  name,
  limits: { ...OFF, ...limits },
});

function budgetAt(startMs = Date.UTC(2026, 0, 15, 12)) {
  const clock = { nowMs: startMs, now: () => clock.nowMs };
  const state = new MemoryBudgetState(clock);
  return { clock, state, budget: createTokenBudget({ state, clock }) };
}

const iso = (limits: Partial<TokenLimits>, at: string): string[] => {
  const window = windowAt({ ...OFF, ...limits }, Date.parse(at));
  return [new Date(window.startMs).toISOString(), new Date(window.endMs).toISOString()];
};

test("windows are aligned to the clock", () => {
  const at = "2026-05-17T13:47:31.250Z";
  assert.deepEqual(iso({ granularity: "minute", step: 15 }, at), [
    "2026-05-17T13:45:00.000Z",
    "2026-05-17T14:00:00.000Z",
  ]);
  assert.deepEqual(iso({ granularity: "hour", step: 1 }, at), ["2026-05-17T13:00:00.000Z", "2026-05-17T14:00:00.000Z"]);
  assert.deepEqual(iso({ granularity: "day", step: 1 }, at), ["2026-05-17T00:00:00.000Z", "2026-05-18T00:00:00.000Z"]);
  assert.deepEqual(iso({ granularity: "month", step: 1 }, at), [
    "2026-05-01T00:00:00.000Z",
    "2026-06-01T00:00:00.000Z",
  ]);
  assert.deepEqual(iso({ granularity: "month", step: 3 }, at), [
    "2026-04-01T00:00:00.000Z",
    "2026-07-01T00:00:00.000Z",
  ]);
  assert.deepEqual(iso({ granularity: "month", step: 1 }, "2026-12-31T23:59:59Z"), [
    "2026-12-01T00:00:00.000Z",
    "2027-01-01T00:00:00.000Z",
  ]);
});

test("stored limits: zero is off, nothing set is no policy, an odd granularity is a day", () => {
  assert.equal(readTokenLimits(undefined), null);
  assert.equal(readTokenLimits({ granularity: "hour", total: 0 }), null);
  assert.deepEqual(readTokenLimits({ granularity: "week", step: 0, total: 100, input: -3 }), {
    ...OFF,
    granularity: "day",
    total: 100,
  });
});

test("a request that does not fit waits, unless nothing is in flight", async () => {
  const { budget } = budgetAt();
  const policies = [policy({ total: 100 })];
  const first = await budget.reserve({ policies, input: 10, output: 500 });
  assert.ok(first.reservation);
  const second = await budget.reserve({ policies, input: 1, output: 1 });
  assert.deepEqual(second.refusal, { policy: "cap", limit: "total", retryAfterMs: 1000 });
  await first.reservation.settle({ input: 10, output: 40 });
  const third = await budget.reserve({ policies, input: 10, output: 40 });
  assert.ok(third.reservation);
});

test("a used-up window refuses until it ends, and then opens again", async () => {
  const { budget, clock } = budgetAt();
  const policies = [policy({ output: 50 })];
  const first = await budget.reserve({ policies, input: 1, output: 50 });
  await first.reservation?.settle({ input: 1, output: 50 });
  clock.nowMs += 1000;
  const refused = await budget.reserve({ policies, input: 1, output: 1 });
  assert.deepEqual(refused.refusal, { policy: "cap", limit: "output", retryAfterMs: 3_599_000 });
  clock.nowMs += 3_599_000;
  assert.ok((await budget.reserve({ policies, input: 1, output: 1 })).reservation);
});

test("a second policy that refuses gives the first one's reservation back", async () => {
  const { budget, state, clock } = budgetAt();
  const wide = policy({ total: 1000 }, "wide");
  const narrow = policy({ total: 10 }, "narrow");
  const holder = await budget.reserve({ policies: [narrow], input: 5, output: 5 });
  const refused = await budget.reserve({ policies: [wide, narrow], input: 5, output: 5 });
  assert.equal(refused.refusal?.policy, "narrow");
  const window = windowAt(wide.limits, clock.now());
  assert.deepEqual(state.read(`acme/wide@${window.startMs}`)?.reserved, { input: 0, output: 0 });
  await holder.reservation?.release();
});

test("settling twice counts once; releasing counts nothing", async () => {
  const { budget, state, clock } = budgetAt();
  const cap = policy({ total: 1000 });
  const key = `acme/cap@${windowAt(cap.limits, clock.now()).startMs}`;
  const first = await budget.reserve({ policies: [cap], input: 5, output: 5 });
  await first.reservation?.settle({ input: 3, output: 4 });
  await first.reservation?.settle({ input: 3, output: 4 });
  await first.reservation?.release();
  const second = await budget.reserve({ policies: [cap], input: 5, output: 5 });
  await second.reservation?.release();
  assert.deepEqual(state.read(key), {
    used: { input: 3, output: 4 },
    reserved: { input: 0, output: 0 },
    inFlight: 0,
    longestOutput: 4,
    requests: 2,
    repeated: {},
  });
});

test("a request without a maximum reserves the default, or the longest answer seen", async () => {
  const { budget, state, clock } = budgetAt();
  const cap = policy({ total: 1_000_000 });
  const key = `acme/cap@${windowAt(cap.limits, clock.now()).startMs}`;
  const first = await budget.reserve({ policies: [cap], input: 0, output: null });
  assert.equal(state.read(key)?.reserved.output, OUTPUT_RESERVE_DEFAULT);
  await first.reservation?.settle({ input: 0, output: 50_000 });
  await budget.reserve({ policies: [cap], input: 0, output: null });
  assert.equal(state.read(key)?.reserved.output, 50_000);
});

test("a ratio of input over output holds", async () => {
  const { budget } = budgetAt();
  const policies = [policy({ ratioInputOverOutput: 2 })];
  const first = await budget.reserve({ policies, input: 100, output: 10 });
  assert.ok(first.reservation, "the first request has nothing to compare with");
  assert.equal((await budget.reserve({ policies, input: 1, output: 10 })).refusal?.limit, "ratioInputOverOutput");
  await first.reservation.settle({ input: 100, output: 60 });
  const second = await budget.reserve({ policies, input: 30, output: 0 });
  await second.reservation?.settle({ input: 30, output: 0 });
  assert.equal((await budget.reserve({ policies, input: 1, output: 1 })).refusal?.limit, "ratioInputOverOutput");
});

type Step = { do: "ask"; input: number; output: number; use: number } | { do: "end"; index: number; settle: boolean };

const step = fc.oneof(
  fc.record({
    do: fc.constant("ask" as const),
    input: fc.nat(200),
    output: fc.nat(200),
    use: fc.double({ min: 0, max: 1, noNaN: true }),
  }),
  fc.record({ do: fc.constant("end" as const), index: fc.nat(20), settle: fc.boolean() }),
);

test("no order of arrivals and endings overruns a cap by more than one request", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { maxLength: 120 }),
      fc.integer({ min: 1, max: 600 }),
      async (steps: Step[], total) => {
        const { budget } = budgetAt();
        const policies = [policy({ total })];
        const open: { settle(): Promise<void>; release(): Promise<void> }[] = [];
        let used = 0;
        let largest = 0;
        for (const next of steps) {
          if (next.do === "ask") {
            const admission = await budget.reserve({ policies, input: next.input, output: next.output });
            if (!admission.reservation) continue;
            const { reservation } = admission;
            const actual = { input: next.input, output: Math.floor(next.output * next.use) };
            largest = Math.max(largest, next.input + next.output);
            open.push({
              settle: async () => {
                used += actual.input + actual.output;
                await reservation.settle(actual);
              },
              release: () => reservation.release(),
            });
          } else {
            const [ended] = open.splice(next.index % Math.max(1, open.length), 1);
            await (next.settle ? ended?.settle() : ended?.release());
          }
        }
        for (const left of open) await left.settle();
        assert.ok(used <= total + largest, `${used} tokens of ${total}, largest request ${largest}`);
      },
    ),
  );
});

test("requests and repeats are counted; a refusal by another policy counts nothing", async () => {
  const { budget, clock } = budgetAt();
  const ask = (policies: CappedPolicy[], body: string) =>
    budget.reserve({ policies, input: 1, output: 1, fingerprint: () => body });
  const refusedBy = async (policies: CappedPolicy[], body: string): Promise<string | null> => {
    const { reservation, refusal } = await ask(policies, body);
    await reservation?.release();
    return refusal?.limit ?? null;
  };
  const rate = policy({ requests: 3 }, "rate");
  const loop = policy({ repeats: 2 }, "loop");
  for (const expected of [null, null, "repeats", "repeats"])
    assert.equal(await refusedBy([rate, loop], "same"), expected);
  assert.equal(await refusedBy([rate, loop], "other"), null, "the third request");
  assert.equal(await refusedBy([rate, loop], "third"), "requests");
  clock.nowMs += 60 * 60 * 1000;
  assert.equal(await refusedBy([rate, loop], "same"), null, "a new window");
  for (let n = 0; n < 100; n += 1) assert.equal(await refusedBy([loop], `many-${n}`), null);
  assert.equal(await refusedBy([loop], "many-99"), null);
  assert.equal(await refusedBy([loop], "many-99"), "repeats");
});
