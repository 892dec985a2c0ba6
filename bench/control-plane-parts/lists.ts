/** List pages and searches as the number of resources in one workspace grows. */
import { sql } from "kysely";
import { type ListQuery, parseListQuery } from "../../src/contract/list-query.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { uuidv7 } from "../../src/lib/ids.ts";
import type { Draft } from "../../src/store/resources.ts";
import { openStore, type Store } from "../../src/store/store.ts";
import type { TestDatabase } from "../../test/databases.ts";
import { percentiles, table } from "../measure.ts";

const WARM_UP = 100;
const SAMPLES = 400;

type Times = ReturnType<typeof percentiles>;

export async function lists(rowsMax: number, database: TestDatabase): Promise<void> {
  const place = await database.fresh();
  const store = await openStore({
    databaseUrl: place.databaseUrl,
    dataDir: place.dataDir,
    secretKey: Buffer.alloc(32, 1),
    clock: systemClock,
    onError: (error) => console.error(error),
  });
  await store.write((tx) =>
    store.workspaces.insert(
      tx,
      { name: "main", accountId: "a", displayName: "", region: "", labels: {}, groupMappings: [], runtime: {} },
      "bench",
    ),
  );
  const sizes = [1000, 10_000, 100_000, 1_000_000].filter((size) => size <= rowsMax);
  const rows: Record<string, string | number>[] = [];
  let first: Record<string, Times> | null = null;
  for (const [at, size] of sizes.entries()) {
    await fill(store, at === 0 ? 0 : (sizes[at - 1] ?? 0), size);
    // Within a minute the database would do it by itself.
    if (store.database.dialect === "postgres") await sql`VACUUM ANALYZE resources`.execute(store.database.read);
    const times = await questions(store);
    first ??= times;
    const floor = first;
    const told = Object.entries(times).map(([name, { p50Ms, p99Ms }]) => {
      const growth = p99Ms / (floor[name]?.p99Ms ?? p99Ms);
      return [name, `${p50Ms.toFixed(2)} ${p99Ms.toFixed(2)} (${growth.toFixed(1)}x)`];
    });
    rows.push({ resources: size, ...Object.fromEntries(told) });
  }
  table(`One page on ${database.name}: p50 ms, p99 ms, p99 as a multiple of that at ${sizes[0]} resources`, rows);
  await store.close();
  place.remove();
}

const TEAMS = ["red", "green", "blue", "amber", "violet"];

/** So many have the rare word, whatever the size: the page is full, and the same. */
const RARE = 60;
const BATCH = 100;
const AT_ONCE = 8;

async function fill(store: Store, from: number, to: number): Promise<void> {
  let next = from;
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      while (next < to) {
        const start = next;
        next = Math.min(next + BATCH, to);
        const drafts = Array.from({ length: next - start }, (_, n) => draft(start + n));
        await store.write(async (tx) => {
          for (const one of drafts) await store.resources.insert(tx, one);
        });
      }
    }),
  );
}

const draft = (n: number): Draft => ({
  workspace: "main",
  kind: "drive",
  parent: "",
  uid: uuidv7(Date.now()),
  name: `drive-${(n * 7919) % 10_000_019}`,
  metadata: {
    displayName: `${n < RARE ? "Zebra" : "Number"} ${n}`,
    labels: { team: TEAMS[n % TEAMS.length] ?? "" },
  },
  spec: { region: "local", size: 10 },
  secrets: {},
  state: {},
  status: "DEPLOYED",
  events: [],
  revision: false,
  actor: "bench",
  settled: true,
});

async function questions(store: Store): Promise<Record<string, Times>> {
  const asked: Record<string, ListQuery> = {
    "newest page": parseListQuery({}),
    "name:asc page": parseListQuery({ sort: "name:asc" }),
    "rare word": parseListQuery({ q: "zebra" }),
    // Eleven of a thousand, eleven thousand of a million: from a short page to a full one.
    "some digits": parseListQuery({ q: "number 77" }),
    "common word": parseListQuery({ q: "violet" }),
    "two letters": parseListQuery({ q: "ed" }),
    "absent word": parseListQuery({ q: "nowhere" }),
    "common, by name": parseListQuery({ q: "violet", sort: "name:asc" }),
  };
  const times: Record<string, Times> = {};
  for (const [name, query] of Object.entries(asked)) {
    const samples: number[] = [];
    for (let n = 0; n < WARM_UP + SAMPLES; n += 1) {
      const at = performance.now();
      await store.resources.list({ workspace: "main", kind: "drive", parent: "" }, query);
      samples.push(performance.now() - at);
    }
    times[name] = percentiles(samples.slice(WARM_UP));
  }
  return times;
}
