import assert from "node:assert/strict";
import { after, test } from "node:test";
import { testDatabases } from "../../test/databases.ts";
import { openTestStore } from "../../test/store.ts";

const databases = await testDatabases();
after(() => databases.stop());

const DIGEST = "d".repeat(64);
const whole = Buffer.alloc(1_300_000, "0123456789abcdef");

async function* cutOff(): AsyncGenerator<Buffer> {
  yield whole.subarray(0, 700_000);
  throw new Error("the server is killed here");
}

for (const database of databases.all)
  test(`on ${database.name} a file that was cut off is not there, can be removed, and is written anew`, {
    skip: database.skip,
  }, async (t) => {
    const place = await database.migrated();
    const store = await openTestStore(place);
    t.after(async () => {
      await store.close();
      place.remove();
    });
    const chunks = (): Promise<unknown[]> => store.database.read.selectFrom("blob_chunks").select("at").execute();
    await assert.rejects(store.blobs.write(DIGEST, cutOff), /killed/);
    assert.equal(await store.blobs.read(DIGEST), null);
    assert.ok((await chunks()).length > 0);
    for (const { digest, writtenMs } of await store.blobs.list()) await store.blobs.remove(digest, writtenMs);
    assert.deepEqual(await chunks(), []);

    await assert.rejects(store.blobs.write(DIGEST, cutOff), /killed/);
    await store.blobs.write(DIGEST, async function* () {
      yield whole;
    });
    const read: Buffer[] = [];
    for await (const bytes of (await store.blobs.read(DIGEST)) ?? []) read.push(bytes);
    assert.ok(Buffer.concat(read).equals(whole));
  });
