import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { after, test } from "node:test";
import { openBlobStore } from "./blob-store.ts";

const home = mkdtempSync(join(tmpdir(), "blobs-"));
after(() => rmSync(home, { recursive: true }));

test("a blob is kept once, under its hash, and never beyond its limit", async () => {
  const blobs = openBlobStore(join(home, "blobs"));
  const one = await blobs.put(Readable.from([Buffer.from("hel"), Buffer.from("lo")]), 5);
  assert.deepEqual(await blobs.put(Readable.from([Buffer.from("hello")]), 5), one);
  assert.equal(one.digest, "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824");
  assert.equal(readFileSync((await blobs.find(one.digest)) ?? "", "utf8"), "hello");
  await assert.rejects(blobs.put(Readable.from([Buffer.from("hello!")]), 5), { code: "payload_too_large" });
  assert.equal(await blobs.find("../../etc/passwd"), null);
  assert.equal((await blobs.list()).length, 1);
  assert.equal(await blobs.readNote(one.digest), null);
  await blobs.writeNote(one.digest, { said: "hi" });
  assert.deepEqual(await blobs.readNote(one.digest), { said: "hi" });
  assert.deepEqual(
    (await blobs.listNotes()).map(({ key }) => key),
    [one.digest],
  );
  await blobs.removeNote(one.digest);
  assert.deepEqual(await blobs.listNotes(), []);
  await assert.rejects(blobs.writeNote("../up", 1));
  await blobs.remove(one.digest);
  assert.equal(await blobs.find(one.digest), null);
});
