import assert from "node:assert/strict";
import { after, test } from "node:test";
import { testDatabases } from "../../test/databases.ts";
import { openTestStore } from "../../test/store.ts";

const databases = await testDatabases();
after(() => databases.stop());

for (const database of databases.all)
  test(`on ${database.name} blobs and manifests of an owner are bounded, and a sweep leaves what is named meanwhile`, {
    skip: database.skip,
  }, async (t) => {
    const place = await database.migrated();
    const { pushedImages, close } = await openTestStore(place);
    t.after(async () => {
      await close();
      place.remove();
    });
    const [one, two] = ["one", "two"].map((repository) => ({ owner: "main/1", repository }));
    assert.ok(one && two);
    const limits = { bytesMax: 100, blobsMax: 3 };
    assert.ok(await pushedImages.addBlob(one, { digest: "a", sizeBytes: 60 }, limits));
    assert.ok(await pushedImages.addBlob(two, { digest: "a", sizeBytes: 60 }, limits), "the same blob counts once");
    assert.ok(!(await pushedImages.addBlob(two, { digest: "b", sizeBytes: 60 }, limits)), "too many bytes");
    assert.ok(await pushedImages.addBlob({ ...one, owner: "other/1" }, { digest: "b", sizeBytes: 60 }, limits));
    for (const digest of ["c", "d"]) assert.ok(await pushedImages.addBlob(one, { digest, sizeBytes: 1 }, limits));
    assert.ok(!(await pushedImages.addBlob(one, { digest: "e", sizeBytes: 1 }, limits)), "too many blobs");
    const manifest = { digest: "m", mediaType: "x", content: "{}", names: ["a"], subject: null };
    assert.equal(await pushedImages.addManifest(one, manifest, 1), "too_large");
    assert.equal(await pushedImages.addManifest(one, { ...manifest, names: ["a", "gone"] }, 100), "incomplete");
    assert.equal(await pushedImages.addManifest(one, manifest, 2), "added");
    assert.equal(await pushedImages.addManifest(one, manifest, 2), "added", "the same manifest counts once");
    assert.equal(await pushedImages.addManifest(two, manifest, 2), "too_large");
    assert.deepEqual(await Promise.all(["a", "c"].map((digest) => pushedImages.isNamed(one, digest))), [true, false]);
    await pushedImages.removeBlobs(one, ["a", "c"], 0);
    assert.equal((await pushedImages.listBlobs(one)).length, 3, "none is that old");
    await pushedImages.removeBlobs(one, ["c"], Number.MAX_SAFE_INTEGER);
    assert.deepEqual((await pushedImages.listBlobs(one)).map(({ digest }) => digest).sort(), ["a", "d"]);
  });
