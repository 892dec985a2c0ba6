/** Whatever befalls the meter of a small world, in the end the ledger says what the world knows was used. */
import assert from "node:assert/strict";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../src/lib/time/clock.ts";
import type { UsageLedger } from "../../src/store/usage/port.ts";
import fc from "../properties.ts";
import { COUNTED, DIMENSION, MeterWorld } from "./meter-world.ts";

const START_MS = Date.parse("2026-02-28T23:58:00Z");

type Action =
  | { do: "pass"; ms: number }
  | { do: "change"; index: number; rate: number }
  | { do: "request" }
  | { do: "flush" }
  | { do: "die"; writes: number; lastOneLands: boolean }
  | { do: "refuse"; lands: boolean }
  | { do: "setClock"; ms: number };

const anyStep: fc.Arbitrary<Action>[] = [
  fc.record({
    do: fc.constant("pass"),
    ms: fc.oneof(fc.nat(6000), fc.nat(10 * MINUTE_MS), fc.nat(3 * HOUR_MS), fc.nat(2 * DAY_MS)),
  }),
  fc.record({ do: fc.constant("change"), index: fc.nat(2), rate: fc.constantFrom(0, 0, 1, 512, 4096) }),
  fc.record({ do: fc.constant("request") }),
  fc.record({ do: fc.constant("flush") }),
];
const anyDeath: fc.Arbitrary<Action> = fc.record({
  do: fc.constant("die"),
  writes: fc.nat(3),
  lastOneLands: fc.boolean(),
});
const anyRefusal: fc.Arbitrary<Action> = fc.record({ do: fc.constant("refuse"), lands: fc.boolean() });
const anySetting: fc.Arbitrary<Action> = fc.record({
  do: fc.constant("setClock"),
  ms: fc.oneof(fc.integer({ min: -2 * HOUR_MS, max: -2000 }), fc.integer({ min: 2000, max: 2 * DAY_MS })),
});

/** What can happen beside the ordinary. */
export const TROUBLES = { death: anyDeath, refusal: anyRefusal, "clock setting": anySetting };

export interface MeterPropertyOptions {
  freshLedger(): Promise<UsageLedger>;
  trouble: keyof typeof TROUBLES;
  runs: number;
}

export async function meteredOnce({ freshLedger, trouble, runs }: MeterPropertyOptions): Promise<void> {
  const anyAction = fc.oneof(...anyStep, TROUBLES[trouble]);
  const property = fc.asyncProperty(fc.array(anyAction, { maxLength: 40 }), async (steps) => {
    const world = new MeterWorld(await freshLedger(), START_MS);
    for (const step of steps) await perform(world, step);
    world.refusals = [];
    const metered = await world.metered();
    for (const [uuid, used] of world.used) assert.equal(metered.get(`${uuid} ${DIMENSION}`) ?? 0n, used, uuid);
    assert.equal(metered.get(`agent ${COUNTED}`) ?? 0n, BigInt(world.counted));
    await world.end();
  });
  await fc.assert(property, { numRuns: runs });
}

async function perform(world: MeterWorld, step: Action): Promise<void> {
  switch (step.do) {
    case "pass":
      return world.pass(step.ms);
    case "change":
      return world.change(step.index, step.rate);
    case "request":
      return world.request();
    case "flush":
      return world.flush();
    case "die":
      world.fuse = { ...step };
      return world.flush();
    case "refuse":
      world.refusals = [step];
      return;
    case "setClock":
      await world.flush();
      world.setClock(step.ms);
      return world.flush();
  }
}
