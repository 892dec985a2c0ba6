/** SIGKILL while metering: in the end the ledger holds exactly what the journal of the machine says was used. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { statSync } from "node:fs";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { hourOf } from "../src/lib/time/utc-calendar.ts";
import { type TestDatabase, testDatabases } from "./databases.ts";
import { LONG } from "./long.ts";
import { COUNTED, type JournalLine, RATED, readJournal } from "./metering/meter-process.ts";
import { openTestStore } from "./store.ts";

const databases = await testDatabases();
after(() => databases.stop());
const ROUNDS = LONG ? 50 : 1;

for (const database of databases.all)
  describe(`killed while metering, on ${database.name}`, { skip: database.skip }, () => {
    test(`${ROUNDS} rounds`, () => killRounds(database));
  });

type Place = Awaited<ReturnType<TestDatabase["fresh"]>>;

async function killRounds(database: TestDatabase): Promise<void> {
  const place = await database.migrated();
  const journal = join(place.dataDir, "journal");
  for (let round = 0; round < ROUNDS; round += 1) {
    const before = sizeOf(journal);
    const server = await startMeterProcess(place, journal);
    // Whatever the speed of the machine, the kill falls into the metering.
    while (sizeOf(journal) === before) await delay(5);
    await delay(Math.random() * 200);
    server.child.kill("SIGKILL");
    await server.ended;
  }
  const server = await startMeterProcess(place, journal, "finish");
  assert.equal(await server.ended, 0);
  const lines = readJournal(journal);
  assert.ok(lines.length >= ROUNDS, "the rounds did something");
  const metered = await totals(place);
  for (const [thing, used] of usedBy(lines)) assert.equal(metered.get(`${RATED} ${thing}`) ?? 0n, used, thing);
  const counted = [...metered].filter(([key]) => key.startsWith(COUNTED)).reduce((sum, [, count]) => sum + count, 0n);
  assert.equal(counted, BigInt(lines.length), "every request once");
  place.remove();
}

const sizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0;

/** Rate times time, by the journal alone. */
function usedBy(lines: JournalLine[]): Map<string, bigint> {
  const used = new Map<string, bigint>();
  const running = new Map<string, JournalLine>();
  for (const line of lines) {
    const before = running.get(line.thing);
    const run = before ? BigInt(before.rate) * BigInt(line.atMs - before.atMs) : 0n;
    used.set(line.thing, (used.get(line.thing) ?? 0n) + run);
    running.set(line.thing, line);
  }
  return used;
}

async function startMeterProcess({ dataDir, databaseUrl }: Place, journal: string, mode = "run") {
  const script = join(import.meta.dirname, "metering/meter-process.ts");
  const child = spawn(process.execPath, [script, dataDir, databaseUrl ?? "", journal, mode], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = new Promise<number | null>((resolve) => child.once("exit", resolve));
  await new Promise((resolve, reject) => {
    child.stdout.once("data", resolve);
    void ended.then((code) => reject(new Error(`the server ended with ${code} before it was ready`)));
  });
  return { child, ended };
}

async function totals(place: Place): Promise<Map<string, bigint>> {
  const store = await openTestStore(place);
  const endHour = hourOf(Date.now()) + 2;
  const { groups } = await store.usage.ask({
    accountId: "acc",
    workspaces: "all",
    filter: {},
    columns: ["resourceUuid", "dimension"],
    startMs: 0,
    endMs: endHour * 3_600_000,
    totalParts: [{ from: "rollup", grain: "hour", startHour: 0, endHour }],
    bucketParts: [],
    bucketHours: 1,
    bucketShiftHours: 0,
    limit: 100,
    after: null,
    rateOf: () => ({ numerator: 0n, denominator: 1n }),
    dimensions: [],
  });
  await store.close();
  return new Map(groups.map(({ key, quantity }) => [`${key.dimension} ${key.resourceUuid}`, quantity]));
}
