/** Cursor paging against a model, while others write: what existed throughout comes exactly once, in order. */

import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { parseListQuery, SORTS } from "../src/contract/list-query.ts";
import type { Resource } from "../src/store/resources/resource.ts";
import { testDatabases } from "./databases.ts";
import { LONG } from "./long.ts";
import fc from "./properties.ts";
import { addWorkspace, draftOf, openTestStore } from "./store.ts";

const databases = await testDatabases();
after(() => databases.stop());
const RUNS = LONG ? 300 : 12;

const WORDS = ["al", "be", "alpha", "beta", "x-ray", "zulu"];
const record = fc.record({ label: fc.constantFrom(...WORDS), display: fc.constantFrom("", ...WORDS) });

for (const database of databases.all) {
  describe(`paging on ${database.name}`, { skip: database.skip }, () => {
    test("a walk under concurrent writes", async () => {
      const place = await database.migrated();
      const store = await openTestStore(place, { onError: assert.ifError });
      await addWorkspace(store);
      let run = 0;
      const create = (kind: string, name: string, { label, display }: { label: string; display: string }) =>
        store.resources.create(draftOf(kind, name, { metadata: { displayName: display, labels: { l: label } } }));
      await fc.assert(
        fc.asyncProperty(
          fc.array(record, { maxLength: 25 }),
          fc.constantFrom(...SORTS),
          fc.integer({ min: 1, max: 7 }),
          fc.constantFrom("", "al", "et", "alpha", "a", "ray"),
          fc.array(fc.record({ at: fc.nat(5), add: fc.boolean(), which: fc.nat(100), ...{ record } }), {
            maxLength: 8,
          }),
          async (records, sort, limit, q, interference) => {
            const kind = `k${run++}`;
            const made: (Resource & { item: { label: string; display: string } })[] = [];
            for (const [n, item] of records.entries())
              made.push({ ...(await create(kind, `n${(n * 7919) % 100}-${n}`, item)).resource, item });
            const removed = new Set<string>();
            const seen: string[] = [];
            let cursor = "";
            for (let page = 0; page === 0 || cursor; page += 1) {
              const found = await store.resources.list(
                { workspace: "main", kind, parent: "" },
                parseListQuery({ sort, limit, q, ...(cursor ? { cursor } : {}) }),
              );
              assert.ok(found.items.length <= limit);
              seen.push(...found.items.map((item) => item.uid));
              cursor = found.nextCursor;
              for (const step of interference.filter(({ at }) => at === page)) {
                const victim = made[step.which % Math.max(made.length, 1)];
                if (step.add) await create(kind, `new${page}-${step.which}`, step.record);
                else if (victim && !removed.has(victim.uid)) {
                  removed.add(victim.uid);
                  await store.resources.delete("main", victim.uid);
                }
              }
            }
            assert.equal(new Set(seen).size, seen.length, "no row twice");
            const matches = ({ name, item }: (typeof made)[number]) =>
              q.length < 2 || [name, item.display, "l", item.label].some((text) => text.includes(q));
            const [by, direction] = sort.split(":");
            const key = (resource: (typeof made)[number]) => (by === "name" ? resource.name : resource.uid);
            const throughout = made
              .filter((resource) => !removed.has(resource.uid) && matches(resource))
              .sort((a, b) => (key(a) < key(b) ? -1 : 1) * (direction === "asc" ? 1 : -1));
            const order = throughout.map((resource) => resource.uid);
            assert.deepEqual(
              seen.filter((uid) => order.includes(uid)),
              order,
            );
          },
        ),
        { numRuns: RUNS, seed: 20261115 },
      );
      await store.close();
      place.remove();
    });
  });
}
