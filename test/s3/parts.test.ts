/** Objects that are sent in parts, and what a kill in the middle leaves. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import * as s3 from "@aws-sdk/client-s3";
import { endOldUploads } from "../../src/composition/s3-uploads.ts";
import type { Deps } from "../../src/kinds/port.ts";
import { DAY_MS } from "../../src/lib/time/clock.ts";
import { FakeMachine, fakeDriver } from "../fake-driver.ts";
import { openDoor, type TestDoor } from "./bucket.ts";

const Bucket = "parts";

describe("objects in parts", () => {
  const machine = new FakeMachine();
  let door: TestDoor;
  let client: s3.S3Client;
  let uid: string;
  const begin = async (Key: string, more: Partial<s3.CreateMultipartUploadCommandInput> = {}) => {
    const { UploadId } = await client.send(new s3.CreateMultipartUploadCommand({ Bucket, Key, ...more }));
    return { Bucket, Key, UploadId };
  };
  const send = async (upload: object, PartNumber: number, Body: Uint8Array | string) => {
    const input = { ...upload, PartNumber, Body } as s3.UploadPartCommandInput;
    const { $metadata: _metadata, ...sent } = await client.send(new s3.UploadPartCommand(input));
    return { PartNumber, ...sent };
  };
  const complete = (upload: object, Parts: object[], more: object = {}) =>
    client.send(
      new s3.CompleteMultipartUploadCommand({
        ...upload,
        MultipartUpload: { Parts },
        ...more,
      } as s3.CompleteMultipartUploadCommandInput),
    );
  const fails = (work: Promise<unknown>, name: string) => assert.rejects(work, { name });
  const onDisk = (key: string) => readFileSync(join(machine.dir, "drives", uid, key));

  before(async () => {
    door = await openDoor({ driver: fakeDriver(machine) });
    ({ uid } = await door.drive(Bucket));
    client = door.client(await door.keys(Bucket));
  });
  after(async () => {
    await door[Symbol.asyncDispose]();
    await machine.dispose();
  });

  test("parts in any order become one object, whichever part was sent twice", async () => {
    const bytes = [0, 1, 2].map(() => randomBytes(300_001));
    for (const [ChecksumAlgorithm, ChecksumType] of [
      ["CRC32", "COMPOSITE"],
      ["CRC32", "FULL_OBJECT"],
      ["CRC64NVME", "FULL_OBJECT"],
      ["SHA256", "COMPOSITE"],
    ] as const) {
      const Key = `whole/${ChecksumAlgorithm}-${ChecksumType}`;
      // The client computes no CRC64NVME; the server does.
      const algorithm = { ChecksumAlgorithm, ChecksumType };
      const upload = await begin(Key, { ...algorithm, ContentType: "text/x", Metadata: { a: "b" } });
      const third = await send(upload, 30, bytes[2] as Buffer);
      await send(upload, 1, "another content");
      const first = await send(upload, 1, bytes[0] as Buffer);
      const second = await send(upload, 2, bytes[1] as Buffer);
      assert.ok(!existsSync(join(machine.dir, "drives", uid, Key)), "nothing is there before the end");
      const listed = await client.send(new s3.ListPartsCommand({ ...upload, MaxParts: 2 } as s3.ListPartsCommandInput));
      assert.deepEqual([listed.Parts?.map(({ PartNumber }) => PartNumber), listed.IsTruncated], [[1, 2], true]);
      const parts = [first, second, third].map(({ PartNumber, ETag }) => ({ PartNumber, ETag }));
      const made = await complete(upload, parts);
      assert.match(made.ETag ?? "", /^"[0-9a-f]{32}-3"$/);
      assert.ok(made[`Checksum${ChecksumAlgorithm}`]?.endsWith(ChecksumType === "COMPOSITE" ? "-3" : "="), Key);
      assert.ok(onDisk(Key).equals(Buffer.concat(bytes)));
      const head = await client.send(new s3.HeadObjectCommand({ Bucket, Key }));
      assert.deepEqual([head.ContentType, head.Metadata, head.ETag], ["text/x", { a: "b" }, made.ETag]);
      await fails(complete(upload, parts), "NoSuchUpload");
    }
  });

  test("parts are copied from objects, by ranges too", async () => {
    await client.send(new s3.PutObjectCommand({ Bucket, Key: "source", Body: "0123456789" }));
    const upload = await begin("copied");
    const Parts = [];
    for (const [PartNumber, CopySourceRange] of [
      [1, "bytes=5-9"],
      [2, undefined],
    ] as const) {
      const { CopyPartResult } = await client.send(
        new s3.UploadPartCopyCommand({
          ...upload,
          PartNumber,
          CopySource: `${Bucket}/source`,
          ...(CopySourceRange ? { CopySourceRange } : {}),
        } as s3.UploadPartCopyCommandInput),
      );
      Parts.push({ PartNumber, ETag: CopyPartResult?.ETag });
    }
    await complete(upload, Parts);
    assert.equal(onDisk("copied").toString(), "567890123456789");
  });

  test("wrong parts are refused, and an abort leaves nothing", async () => {
    const upload = await begin("refused");
    const one = await send(upload, 1, "one");
    const two = await send(upload, 2, "two");
    await fails(complete(upload, [two, one]), "InvalidPartOrder");
    await fails(complete(upload, [one, one]), "InvalidPartOrder");
    await fails(complete(upload, [{ ...one, ETag: two.ETag }]), "InvalidPart");
    await fails(complete(upload, [one, { PartNumber: 3, ETag: one.ETag }]), "InvalidPart");
    await fails(send(upload, 0, "x"), "InvalidArgument");
    await fails(send(upload, 10_001, "x"), "InvalidArgument");
    await fails(send({ ...upload, Key: "other" }, 1, "x"), "NoSuchUpload");
    await fails(send({ ...upload, UploadId: "../../records" }, 1, "x"), "NoSuchUpload");
    const { Uploads } = await client.send(new s3.ListMultipartUploadsCommand({ Bucket }));
    assert.deepEqual(
      Uploads?.map(({ Key }) => Key),
      ["refused"],
    );
    await client.send(new s3.AbortMultipartUploadCommand(upload as s3.AbortMultipartUploadCommandInput));
    await fails(complete(upload, [one]), "NoSuchUpload");
    assert.deepEqual(readdirSync(join(machine.dir, "drives-work", uid, "uploads")), []);
    const conditional = await begin("copied");
    const part = await send(conditional, 1, "x");
    await fails(complete(conditional, [part], { IfNoneMatch: "*" }), "PreconditionFailed");
    assert.equal(onDisk("copied").length, 15, "the object that was there stays");
    assert.deepEqual(readdirSync(join(machine.dir, "drives-work", uid, "staged")), []);
  });

  test("an upload that nobody ends is removed with its parts, in a drive that nobody opens any more", async () => {
    const uploads = (): string[] => readdirSync(join(machine.dir, "drives-work", uid, "uploads"));
    const { UploadId = "" } = await begin("forgotten");
    await send({ Bucket, Key: "forgotten", UploadId }, 1, "part");
    const sweep = (aheadMs: number): Promise<void> =>
      endOldUploads(
        {
          ...{
            store: door.platform.app.store,
            driver: fakeDriver(machine),
            clock: { now: () => Date.now() + aheadMs },
          },
          nodes: { self: { id: "another" }, shared: true } as Deps["nodes"],
        },
        new AbortController().signal,
      );
    await sweep(6 * DAY_MS);
    assert.ok(uploads().includes(UploadId), "a client may still go on");
    await sweep(8 * DAY_MS);
    assert.ok(!uploads().includes(UploadId));
  });
});
