/** List pages and searches as the number of resources in one workspace grows. */

import { sql } from "kysely";
import { type ListQuery, parseListQuery } from "../../src/contract/list-query.ts";
import { uuidv7 } from "../../src/lib/ids.ts";
import type { Draft } from "../../src/store/resources/resources.ts";
import { gramsOf, searchText } from "../../src/store/resources/search-grams.ts";
import type { Store } from "../../src/store/store.ts";
import type { TestDatabase } from "../../test/databases.ts";
import { addWorkspace, openTestStore } from "../../test/store.ts";
import { percentiles, table } from "../measure.ts";

const WARM_UP = 100;
const SAMPLES = 400;

type Times = ReturnType<typeof percentiles>;

export async function lists(rowsMax: number, database: TestDatabase): Promise<void> {
  const place = await database.fresh();
  const store = await openTestStore(place);
  await addWorkspace(store);
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

/** Drives in the workspace `main`, from a number up to another. */
export async function fill(store: Store, from: number, to: number): Promise<void> {
  if (store.database.dialect === "postgres" && from > 0) return fillAtOnce(store, from, to);
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

/** Copies of a row that the store has written, so that a million takes minutes: what differs is made the store's way. */
async function fillAtOnce(store: Store, from: number, to: number): Promise<void> {
  const { read } = store.database;
  for (let start = from; start < to; start += COPIED) {
    const rows = Array.from({ length: Math.min(COPIED, to - start) }, (_, n) => {
      const { uid, name, metadata, workspace, kind, parent } = draft(start + n);
      const search = searchText(name, metadata as { displayName: string; labels: Record<string, string> });
      const grams = gramsOf(search, { workspace, kind, parent });
      return { uid, name, slot: name, metadata: JSON.stringify(metadata), search, grams };
    });
    await sql`
      INSERT INTO resources
      SELECT (jsonb_populate_record(template, one)).*
      FROM resources AS template, jsonb_array_elements(${JSON.stringify(rows)}::jsonb) AS one
      WHERE template.uid = (SELECT max(uid) FROM resources)
    `.execute(read);
  }
  await sql`UPDATE resource_counts SET n = ${to}`.execute(read);
}

const COPIED = 2000;

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
    // Eleven of a thousand, eleven thousand of a million: a page that is full at every size.
    "some digits": parseListQuery({ q: "number 77", limit: 10 }),
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
