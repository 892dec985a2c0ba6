/** Files by their hash in a bucket that servers share, against the S3 door of another server. */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { after, before, describe, test } from "node:test";
import { openSharedBlobs } from "../../src/composition/shared-blobs.ts";
import type { Config } from "../../src/config.ts";
import type { Log } from "../../src/kinds/port.ts";
import { openBlobStore, type SharedBlobs } from "../../src/node/blobs/blob-store.ts";
import { CHUNK_BYTES } from "../../src/s3/client/bucket-blobs.ts";
import type { S3Listener } from "../../src/s3/s3-listener.ts";
import type { Store } from "../../src/store/store.ts";
import { BARE_BUCKET, openBareDoor } from "./bare-door.ts";

const content = randomBytes(CHUNK_BYTES * 2 + 4711);
const digest = createHash("sha256").update(content).digest("hex");
const whole = async function* (): AsyncGenerator<Buffer> {
  for (let at = 0; at < content.length; at += 1_000_000) yield content.subarray(at, at + 1_000_000);
};
const cutOff = async function* (): AsyncGenerator<Buffer> {
  yield content.subarray(0, CHUNK_BYTES + 1);
  throw new Error("the server is killed here");
};

describe("the object store", () => {
  const home = mkdtempSync(join(tmpdir(), "berth-object-store-"));
  const [files, work] = [join(home, "files"), join(home, "work")];
  const folder = join(files, "team/berth/blobs", digest);
  let door: S3Listener;
  let shared: SharedBlobs;
  const logged: string[] = [];
  /** The database of the servers, which has a file from before there was a bucket. */
  const old = new Map([["e".repeat(64), Buffer.from("older")]]);
  const store = {
    blobs: { read: async (name: string) => (old.has(name) ? Readable.from([old.get(name)]) : null) },
  } as unknown as Store;
  const open = (more: object = {}): Promise<SharedBlobs | undefined> =>
    openSharedBlobs({
      config: {
        object_store: `s3://${BARE_BUCKET}/team/berth`,
        object_store_endpoint: `http://127.0.0.1:${door.port}`,
        object_store_region: "local",
        ...{ object_store_key_id: "KEY", object_store_secret: "secret", ...more },
      } as unknown as Config,
      store,
      log: { warn: ({ err }: { err: Error }) => logged.push(err.message) } as unknown as Log,
    });
  const textOf = async (from: AsyncIterable<Buffer> | null): Promise<string> =>
    from === null ? "" : text(Readable.from(from));

  before(async () => {
    for (const one of [files, work]) mkdirSync(one);
    door = await openBareDoor({ files, work });
    shared = (await open()) ?? assert.fail();
  });
  after(async () => {
    await door?.stop();
    rmSync(home, { recursive: true, force: true });
  });

  test("a file that was cut off is not there, and is removed by a sweep", async () => {
    await assert.rejects(shared.write(digest, cutOff), { code: "unavailable" });
    assert.match(logged.at(-1) ?? "", /killed/);
    assert.equal(await shared.read(digest), null);
    const [unfinished = assert.fail()] = await shared.list();
    assert.equal(unfinished.digest, digest);
    await shared.remove(digest, unfinished.writtenMs - 1);
    assert.equal((await shared.list()).length, 1, "it was written after the sweep looked");
    await shared.remove(digest, unfinished.writtenMs);
    assert.deepEqual(await shared.list(), []);
  });

  test("what one server keeps another has, also when the first has lost its disk", async () => {
    const one = openBlobStore(join(home, "one"), shared);
    assert.equal((await one.put(Readable.from(whole()), content.length)).digest, digest);
    const two = openBlobStore(join(home, "two"), shared);
    const path = (await two.find(digest)) ?? assert.fail("the other server does not find it");
    assert.ok((await readFile(path)).equals(content));
    rmSync(join(home, "one"), { recursive: true });
    const again = openBlobStore(join(home, "one"), shared);
    assert.ok((await readFile((await again.find(digest)) ?? assert.fail())).equals(content));
    await shared.write(digest, whole);
    const kept = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    assert.equal(kept.length, 4, "equal content is stored once: three chunks, and the object that names them");
  });

  test("a chunk that was changed in the bucket is found by its hash, and no part of it is kept", async () => {
    const { write } = JSON.parse(await readFile(join(folder, "whole"), "utf8")) as { write: string };
    const chunk = join(folder, write, "1");
    const before = await readFile(chunk);
    writeFileSync(chunk, randomBytes(before.length));
    const three = openBlobStore(join(home, "three"), shared);
    assert.equal(await three.find(digest), null);
    assert.deepEqual(readdirSync(join(home, "three", "temp")), []);
    writeFileSync(chunk, before);
    assert.notEqual(await three.find(digest), null);
  });

  test("files of the database from before there was a bucket are read", async () => {
    assert.equal(await textOf(await shared.read("e".repeat(64))), "older");
    assert.equal(await shared.read("f".repeat(64)), null);
  });

  test("an object that names its chunks wrongly is no file, until the file is written again", async () => {
    for (const bad of ["{", '{"write":"../other","chunks":1}', '{"write":"a","chunks":1e12}']) {
      writeFileSync(join(folder, "whole"), bad);
      assert.equal(await shared.read(digest), null);
    }
    await shared.write(digest, whole);
    assert.notEqual(await shared.read(digest), null);
  });

  test("wrong credentials are in the log and not in the answer, and leave no file; a place that is none is told", async () => {
    const wrong = (await open({ object_store_secret: "guess" })) ?? assert.fail();
    const four = openBlobStore(join(home, "four"), wrong);
    await assert.rejects(four.put(Readable.from(whole()), content.length), {
      ...{ code: "unavailable", message: "The object store of this installation cannot be used now." },
    });
    assert.match(logged.at(-1) ?? "", /SignatureDoesNotMatch/);
    assert.deepEqual(readdirSync(join(home, "four", "temp")), []);
    await assert.rejects(open({ object_store: "s3://bucket/../other" }), /write s3:\/\/BUCKET/);
    await assert.rejects(open({ object_store_secret: undefined }), /BERTH_OBJECT_STORE_SECRET/);
  });
});
