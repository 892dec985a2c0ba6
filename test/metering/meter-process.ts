/**
 * A server that runs things and meters them, for tests that kill it. What it does to its things it first writes into a
 * journal, as a supervisor outside of it would: after a kill the next one finds there what runs and what has ended.
 */

import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { systemClock } from "../../src/lib/time/clock.ts";
import { Meter } from "../../src/metering/meter.ts";
import { createPriceBook } from "../../src/metering/price-book.ts";
import { openTestStore } from "../store.ts";

export const RATED = "sandbox_compute_runtime_gbs";
export const COUNTED = "agent_async_requests_count";
const THINGS = 5;

/** From `atMs` on the thing runs at this rate; 0 = not at all. */
export interface JournalLine {
  thing: string;
  rate: number;
  atMs: number;
}

export function readJournal(file: string): JournalLine[] {
  const text = existsSync(file) ? readFileSync(file, "utf8") : "";
  return text
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line) as JournalLine);
}

if (import.meta.main) {
  const [dataDir = "", databaseUrl = "", journal = "", mode = ""] = process.argv.slice(2);
  const store = await openTestStore({ dataDir, databaseUrl: databaseUrl || null });
  const meter = await Meter.start({
    ledger: store.usage,
    book: createPriceBook(),
    clock: systemClock,
    monotonicMs: () => performance.now(),
    node: "killed",
    // Often, so that a kill has something to hit.
    flushMs: 20,
    onError: (error) => console.error(error),
  });
  const rates = await observeAll();
  console.log("ready");
  if (mode === "finish") {
    await Promise.all([...rates.keys()].map((thing) => change(thing, 0)));
    await meter.stop();
    await store.close();
  } else {
    for (let n = 0; ; n += 1) {
      const rate = Math.random() < 0.4 ? 0 : 1 + Math.floor(Math.random() * 4096);
      const changed = change(`thing-${Math.floor(Math.random() * THINGS)}`, rate);
      // Often the next change comes before the last one is on disk.
      if (n % 3 === 0) await changed;
      else await delay(Math.random() * 5);
    }
  }

  async function change(thing: string, rate: number): Promise<void> {
    if ((rates.get(thing) ?? 0) === rate) return;
    rates.set(thing, rate);
    const atMs = Date.now();
    appendFileSync(journal, `${JSON.stringify({ thing, rate, atMs } satisfies JournalLine)}\n`);
    const requests = { ...resourceOf("requests"), uuid: thing };
    await Promise.all([
      meter.setRate(resourceOf(thing), RATED, rate, { atMs }),
      meter.count(requests, COUNTED, 1, { key: `${rate}`, atMs }),
    ]);
  }

  /** Tells all that may or may not have been heard: every run that ended, what runs now, and every request. */
  async function observeAll(): Promise<Map<string, number>> {
    const running = new Map<string, JournalLine>();
    for (const line of readJournal(journal)) {
      const { thing, rate, atMs } = line;
      const before = running.get(thing);
      if (before && before.rate > 0) {
        await meter.ran(resourceOf(thing), RATED, before.rate, { fromMs: before.atMs, untilMs: atMs });
      }
      await meter.count({ ...resourceOf("requests"), uuid: thing }, COUNTED, 1, { key: `${rate}`, atMs });
      running.set(thing, line);
    }
    for (const { thing, rate, atMs } of running.values()) {
      if (rate > 0) await meter.setRate(resourceOf(thing), RATED, rate, { atMs });
    }
    return new Map([...running].map(([thing, { rate }]) => [thing, rate]));
  }

  function resourceOf(name: string) {
    return { accountId: "acc", workspace: "main", name, uuid: name };
  }
}
