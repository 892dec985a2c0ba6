/** `berth rotate-key` on content of every sealed column, killed at every kind of step. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { takeNextKey, unlock, unlockOrMake } from "../../src/auth/secret-key.ts";
import { nextKeyFile, oldKeyFile, readKeyFile, secretKeyFile } from "../../src/auth/secret-key-files.ts";
import { fingerprintOf } from "../../src/lib/sealed-box.ts";
import type { Store } from "../../src/store/store.ts";
import { type TestPlace, testDatabases } from "../databases.ts";
import { openTestStore } from "../store.ts";
import { assertClosedTo, fill, readAll } from "./content.ts";

const databases = await testDatabases();
after(() => databases.stop());

/** In this order, each on what the one before left behind. */
const KILLED_AT = {
  sqlite: ["made", "begun:1", "batch:3", "batch:10", "guarded:1", "batch:5", "ended:1"],
  postgres: ["batch:12", "guarded:1", "ended:1"],
};

for (const database of databases.all)
  describe(`the key of ${database.name}`, { skip: database.skip }, () => {
    test("is replaced by a rotation that is killed at every kind of step", async (t) => {
      const place = await database.migrated();
      t.after(() => place.remove());
      const first = await openWith(place);
      await fill(first);
      const before = await readAll(first);
      for (const [column, values] of Object.entries(before)) assert.notEqual(values.length, 0, `${column} has content`);
      const derived = first.keyFor("preview-addresses");
      const oldKey = first.keyring.keyOf(first.keyring.newest);
      await first.close();

      for (const step of KILLED_AT[database.name]) {
        assert.equal(await rotateUntil(place, step), "SIGKILL", step);
        const store = await openWith(place);
        assert.deepEqual(await readAll(store), before, `after ${step}`);
        const { rotation } = await store.keyRecords.state();
        if (step === "batch:10")
          assert.deepEqual([rotation?.table, rotation?.after?.at(-1)], ["thread_messages.sealed", 99]);
        assert.equal((await told(store)).length, step === "ended:1" ? 1 : 0, `the audit log after ${step}`);
        await store.close();
      }
      assert.equal(await rotateUntil(place, "never"), 0);

      const now = await openWith(place);
      t.after(() => now.close());
      const targets = (await told(now)).map(({ target }) => target);
      assert.deepEqual([targets.length, new Set(targets).size], [2, 2], "each rotation is told once");
      const newKey = readKeyFile(secretKeyFile(place.dataDir)) ?? assert.fail();
      assert.notDeepEqual(newKey, oldKey);
      assert.deepEqual(await readAll(now), before);
      assert.deepEqual(now.keyFor("preview-addresses"), derived, "what hangs on the root stays");
      await assertClosedTo(oldKey, now);
      assertKeyFiles(place, { oldKey });
      // And once more, from the key that was new.
      const third = takeNextKey({ data: place.dataDir }) ?? assert.fail();
      const { resealed, unreadable } = await now.rotateKey(fingerprintOf(third), { answersMs: 60_000 });
      assert.deepEqual([resealed, unreadable], [Object.values(before).flat().length, 0]);
      assert.deepEqual(await readAll(now), before);
      await assertClosedTo(newKey, now);
    });

    test("is replaced while others write, and every value of theirs has the new key", async (t) => {
      const place = await database.migrated();
      t.after(() => place.remove());
      const store = await openWith(place);
      t.after(() => store.close());
      await fill(store);
      const oldKey = store.keyring.keyOf(store.keyring.newest);
      let isOver = false;
      const writer = async (name: string): Promise<number> => {
        let n = 0;
        for (; !isOver; n += 1) await store.threads.append("agent", name, [{ n }], 60_000);
        return n;
      };
      const writers = Promise.all(["a", "b", "c"].map(writer));
      const next = takeNextKey({ data: place.dataDir }) ?? assert.fail();
      await store.rotateKey(fingerprintOf(next), { answersMs: 60_000 });
      isOver = true;
      for (const [index, n] of (await writers).entries()) {
        const { messages = [] } = (await store.threads.read("agent", "abc"[index] ?? "", 1000)) ?? {};
        assert.deepEqual(messages.at(-1), { n: n - 1 });
      }
      await assertClosedTo(oldKey, store);
    });

    test("given from outside is replaced by the next one that is given", async (t) => {
      const place = await database.migrated();
      t.after(() => place.remove());
      const [old, next] = ["the first key, which is long enough", "the next key, which is long enough too"];
      const first = await openWith(place, { secret_key: old });
      await fill(first);
      const before = await readAll(first);
      await first.close();
      const both = await openWith(place, { secret_key: old, secret_key_next: next });
      const to = takeNextKey({ data: place.dataDir, secret_key: old, secret_key_next: next }) ?? assert.fail();
      await both.rotateKey(fingerprintOf(to), { answersMs: 60_000 });
      await both.close();
      // The settings may stay as they are, or say the new key only; the old one alone is refused.
      for (const settings of [{ secret_key: old, secret_key_next: next }, { secret_key: next }]) {
        const store = await openWith(place, settings);
        assert.deepEqual(await readAll(store), before);
        await store.close();
      }
      await assert.rejects(
        openWith(place, { secret_key: old }),
        /sealed with the key [0-9a-f]{16}, but BERTH_SECRET_KEY/,
      );
      assert.deepEqual(
        readdirSync(place.dataDir).filter((name) => name.startsWith("secret.key")),
        [],
      );
    });

    test("is not needed twice: a start without the new key of a rotation under way is refused", async (t) => {
      const place = await database.migrated();
      t.after(() => place.remove());
      const [old, next] = ["the first key, which is long enough", "the next key, which is long enough too"];
      const both = await openWith(place, { secret_key: old, secret_key_next: next });
      await fill(both);
      const to = takeNextKey({ data: place.dataDir, secret_key: old, secret_key_next: next }) ?? assert.fail();
      const abort = new AbortController();
      const options = { answersMs: 60_000, signal: abort.signal, onProgress: () => abort.abort() };
      await assert.rejects(both.rotateKey(fingerprintOf(to), options), { name: "AbortError" });
      const third = { answersMs: 60_000 };
      await assert.rejects(
        both.rotateKey("0123456789abcdef", third),
        /A rotation to the key [0-9a-f]{16} is under way/,
      );
      await both.close();
      await assert.rejects(openWith(place, { secret_key: old }), /does not have the key [0-9a-f]{16}/);
    });
  });

const openWith = (place: TestPlace, settings: { secret_key?: string; secret_key_next?: string } = {}): Promise<Store> =>
  openTestStore(place, {
    unlock: (existsSync(secretKeyFile(place.dataDir)) ? unlock : unlockOrMake)({ data: place.dataDir, ...settings }),
  });

const told = (store: Store) => store.audit.list({ action: "secretKeyRotated", limit: 10 });

async function rotateUntil(place: TestPlace, step: string): Promise<string | number> {
  const script = join(import.meta.dirname, "rotate-child.ts");
  const child = spawn(process.execPath, [script, place.dataDir, place.databaseUrl ?? "", step], {
    stdio: ["ignore", "inherit", "inherit"],
  });
  const [code, signal] = await once(child, "exit");
  return signal ?? code;
}

function assertKeyFiles({ dataDir }: TestPlace, { oldKey }: { oldKey: Buffer }): void {
  assert.ok(!existsSync(nextKeyFile(dataDir)));
  const kept = oldKeyFile(dataDir, fingerprintOf(oldKey));
  assert.equal(readFileSync(kept, "utf8"), oldKey.toString("hex"));
  for (const file of [kept, secretKeyFile(dataDir)]) assert.equal(statSync(file).mode & 0o777, 0o600);
}
