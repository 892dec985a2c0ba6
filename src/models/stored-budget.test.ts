import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { testDatabases } from "../../test/databases.ts";
import { openTestStore } from "../../test/store.ts";
import { createStoredBudget } from "./stored-budget.ts";
import { createTokenBudget } from "./token-budget.ts";

const databases = await testDatabases();
after(() => databases.stop());

for (const database of databases.all) {
  describe(`stored token caps on ${database.name}`, { skip: database.skip }, () => {
    test("hold over servers and restarts, and give back what the dead held", async () => {
      const place = await database.migrated();
      let nowMs = Date.UTC(2026, 10, 15, 12);
      const clock = { now: () => nowMs };
      const store = await openTestStore(place, { clock });
      const server = (holder: string, alone = false) =>
        createTokenBudget({ clock, state: createStoredBudget({ records: store.records, clock, holder, alone }) });
      const policies = [
        {
          key: "main/p",
          name: "p",
          limits: { granularity: "day", step: 1, input: 0, output: 0, total: 100, ratioInputOverOutput: 0 } as never,
        },
      ];
      const ask = { policies, input: 10, output: 40 };

      const first = await server("a").reserve(ask);
      assert.ok(first.reservation);
      assert.ok((await server("b").reserve(ask)).reservation, "100 fit");
      assert.equal((await server("a").reserve(ask)).refusal?.policy, "p", "150 do not");
      await first.reservation.settle({ input: 10, output: 20 });
      assert.ok(
        (await server("b").reserve({ ...ask, output: 5 })).refusal === undefined,
        "what was not used is free again",
      );

      nowMs += 21 * 60_000;
      const later = await server("c").reserve({ ...ask, output: 60 });
      assert.ok(later.reservation, "a and b are silent for longer than a request may take");
      const restarted = await server("d", true).reserve({ ...ask, output: 60 });
      assert.ok(restarted.reservation, "a server that is alone knows that nobody else holds anything");
      await restarted.reservation.settle({ input: 10, output: 60 });
      assert.ok((await server("e", true).reserve(ask)).refusal, "30 and 70 are used up");
      nowMs += 24 * 3600_000;
      assert.ok((await server("e", true).reserve(ask)).reservation, "a new day");
      await store.records.forgetExpired();
      await store.close();
      place.remove();
    });
  });
}
