/** Drives as buckets, through Amazon's own client; the files are looked at on the disk. */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { after, before, describe, test } from "node:test";
import * as s3 from "@aws-sdk/client-s3";
import { FakeMachine, fakeDriver } from "../fake-driver.ts";
import { openDoor, type S3Keys, type TestDoor } from "./bucket.ts";

const Bucket = "files";

describe("objects of a drive", () => {
  const machine = new FakeMachine();
  let door: TestDoor;
  let client: s3.S3Client;
  let keys: S3Keys;
  let dir: string;
  let elsewhere: string;
  const text = async (Key: string, more: Partial<s3.GetObjectCommandInput> = {}): Promise<string> => {
    const { Body } = await client.send(new s3.GetObjectCommand({ Bucket, Key, ...more }));
    return (await Body?.transformToString()) ?? "";
  };
  const put = (Key: string, Body: string, more: Partial<s3.PutObjectCommandInput> = {}) =>
    client.send(new s3.PutObjectCommand({ Bucket, Key, Body, ...more }));
  const list = async (more: Partial<s3.ListObjectsV2CommandInput> = {}) => {
    const page = await client.send(new s3.ListObjectsV2Command({ Bucket, ...more }));
    return {
      keys: page.Contents?.map(({ Key }) => Key) ?? [],
      prefixes: page.CommonPrefixes?.map(({ Prefix }) => Prefix) ?? [],
      next: page.NextContinuationToken,
    };
  };
  const fails = (work: Promise<unknown>, name: string) => assert.rejects(work, { name });

  before(async () => {
    door = await openDoor({ driver: fakeDriver(machine) });
    const made = await door.drive(Bucket);
    const other = await door.drive("other");
    keys = await door.keys(Bucket);
    assert.equal(made.s3Url, `${keys.endpoint}/${Bucket}`);
    client = door.client(keys);
    await put("first", "1");
    dir = join(machine.dir, "drives", made.uid);
    elsewhere = join(machine.dir, "drives", other.uid);
    mkdirSync(elsewhere, { recursive: true });
    writeFileSync(join(elsewhere, "secret"), "of another drive");
  });
  after(async () => {
    await door[Symbol.asyncDispose]();
    await machine.dispose();
  });

  test("folders deeper than a key can name, and files with holes, cost the server little", async () => {
    const deep = Array.from({ length: 6 }, () => "n".repeat(200)).join("/");
    mkdirSync(join(dir, "deep", deep), { recursive: true });
    writeFileSync(join(dir, "deep", deep, "file"), "x");
    assert.deepEqual((await list({ Prefix: "deep/" })).keys, []);
    assert.deepEqual((await list({ Prefix: "deep/", Delimiter: "/" })).prefixes, []);
    writeFileSync(join(dir, "holes"), "");
    truncateSync(join(dir, "holes"), 2 ** 33);
    const copy = { Bucket, Key: "copied", CopySource: `${Bucket}/holes` };
    await fails(client.send(new s3.CopyObjectCommand(copy)), "InvalidRequest");
    rmSync(join(dir, "holes"));
    rmSync(join(dir, "deep"), { recursive: true });
  });

  test("an object is a file at once, and a file an object", async () => {
    const made = await put("docs/a b/ü+1.txt", "hello", {
      ContentType: "text/plain; charset=utf-8",
      CacheControl: "no-cache",
      Metadata: { colour: "red" },
      Tagging: "team=a&size=b%20c",
    });
    assert.equal(made.ETag, '"5d41402abc4b2a76b9719d911017c592"');
    assert.equal(readFileSync(join(dir, "docs/a b/ü+1.txt"), "utf8"), "hello");
    const got = await client.send(
      new s3.GetObjectCommand({ Bucket, Key: "docs/a b/ü+1.txt", ChecksumMode: "ENABLED" }),
    );
    assert.equal(await got.Body?.transformToString(), "hello");
    assert.deepEqual(
      [got.ContentType, got.CacheControl, got.Metadata, got.TagCount, got.ChecksumCRC32],
      ["text/plain; charset=utf-8", "no-cache", { colour: "red" }, 2, "NhCmhg=="],
    );
    writeFileSync(join(dir, "docs/made.txt"), "by a workload");
    const head = await client.send(new s3.HeadObjectCommand({ Bucket, Key: "docs/made.txt" }));
    assert.equal(head.ContentLength, 13);
    assert.match(head.ETag ?? "", /^"[0-9a-f]{32}-1"$/);
    assert.equal(await text("docs/made.txt"), "by a workload");
    writeFileSync(join(dir, "docs/a b/ü+1.txt"), "HELLO");
    const changed = await client.send(new s3.HeadObjectCommand({ Bucket, Key: "docs/a b/ü+1.txt" }));
    assert.notEqual(changed.ETag, made.ETag, "a file that a workload changed has another ETag");
    assert.deepEqual(changed.Metadata, {}, "and no metadata of what was there before");
  });

  test("ranges, conditions and replaced headers of a read", async () => {
    const { ETag } = await put("range", "0123456789");
    assert.equal(await text("range", { Range: "bytes=2-4" }), "234");
    assert.equal(await text("range", { Range: "bytes=-2" }), "89");
    await fails(text("range", { Range: "bytes=10-" }), "InvalidRange");
    await fails(text("range", { IfMatch: '"x"' }), "PreconditionFailed");
    assert.equal(await text("range", { IfMatch: ETag }), "0123456789");
    await assert.rejects(
      text("range", { IfNoneMatch: ETag }),
      (error: s3.S3ServiceException) => error.$metadata.httpStatusCode === 304,
    );
    const got = await client.send(
      new s3.GetObjectCommand({ Bucket, Key: "range", ResponseContentType: "text/csv", Range: "bytes=0-0" }),
    );
    assert.deepEqual([got.ContentType, got.ContentRange], ["text/csv", "bytes 0-0/10"]);
    await fails(text("none"), "NoSuchKey");
    await fails(text("range/below"), "NoSuchKey");
  });

  test("conditional writes: one of many creates wins, and a replaced object is not replaced twice", async () => {
    const tries = Array.from({ length: 8 }, (_, index) => put("once", String(index), { IfNoneMatch: "*" }));
    const results = await Promise.allSettled(tries);
    assert.equal(results.filter(({ status }) => status === "fulfilled").length, 1);
    for (const each of results) if (each.status === "rejected") assert.equal(each.reason.name, "PreconditionFailed");
    const { ETag } = await put("once", "a");
    await put("once", "b", { IfMatch: ETag });
    await fails(put("once", "c", { IfMatch: ETag }), "PreconditionFailed");
    await fails(put("absent", "c", { IfMatch: ETag }), "NoSuchKey");
    assert.equal(await text("once"), "b");
  });

  test("a stream of unknown content arrives whole, with each checksum", async () => {
    const bytes = Buffer.alloc(3_000_001, "berth");
    for (const ChecksumAlgorithm of ["CRC32", "CRC32C", "SHA1", "SHA256"] as const) {
      const Body = Readable.from([bytes.subarray(0, 1_000_000), bytes.subarray(1_000_000)]);
      const input = { Bucket, Key: "stream", Body, ContentLength: bytes.length, ChecksumAlgorithm };
      await client.send(new s3.PutObjectCommand(input));
      assert.ok(readFileSync(join(dir, "stream")).equals(bytes));
      const head = await client.send(new s3.HeadObjectCommand({ Bucket, Key: "stream", ChecksumMode: "ENABLED" }));
      assert.ok(head[`Checksum${ChecksumAlgorithm}`], ChecksumAlgorithm);
    }
    await fails(put("wrong", "x", { ChecksumSHA256: `${"A".repeat(43)}=` }), "BadDigest");
    await fails(put("wrong", "x", { ContentMD5: "AAAAAAAAAAAAAAAAAAAAAA==" }), "BadDigest");
    await fails(text("wrong"), "NoSuchKey");
  });

  test("copies, tags and deletes", async () => {
    await put("from", "copied", { Metadata: { a: "1" }, ContentType: "text/x", Tagging: "t=1" });
    await client.send(new s3.CopyObjectCommand({ Bucket, Key: "to/copy", CopySource: `${Bucket}/from` }));
    const head = await client.send(new s3.HeadObjectCommand({ Bucket, Key: "to/copy" }));
    assert.deepEqual([head.Metadata, head.ContentType, head.ContentLength], [{ a: "1" }, "text/x", 6]);
    const replaced = { Bucket, Key: "from", CopySource: `${Bucket}/from`, MetadataDirective: "REPLACE" } as const;
    await client.send(new s3.CopyObjectCommand({ ...replaced, Metadata: { b: "2" } }));
    assert.deepEqual((await client.send(new s3.HeadObjectCommand({ Bucket, Key: "from" }))).Metadata, { b: "2" });
    await fails(
      client.send(new s3.CopyObjectCommand({ Bucket, Key: "x", CopySource: "other/secret" })),
      "AccessDenied",
    );
    const Tagging = { TagSet: [{ Key: "k", Value: "v <&> w" }] };
    await client.send(new s3.PutObjectTaggingCommand({ Bucket, Key: "to/copy", Tagging }));
    const tags = await client.send(new s3.GetObjectTaggingCommand({ Bucket, Key: "to/copy" }));
    assert.deepEqual(tags.TagSet, Tagging.TagSet);
    await client.send(new s3.DeleteObjectTaggingCommand({ Bucket, Key: "to/copy" }));
    assert.deepEqual((await client.send(new s3.GetObjectTaggingCommand({ Bucket, Key: "to/copy" }))).TagSet, []);
    await client.send(new s3.DeleteObjectCommand({ Bucket, Key: "to/copy" }));
    await client.send(new s3.DeleteObjectCommand({ Bucket, Key: "to/copy" }));
    const Delete = { Objects: ["from", "range", "not there", "../x"].map((Key) => ({ Key })) };
    const many = await client.send(new s3.DeleteObjectsCommand({ Bucket, Delete }));
    assert.equal(many.Deleted?.length, 4);
    await fails(text("from"), "NoSuchKey");
    const left = await list({ Prefix: "to/", Delimiter: "/" });
    assert.deepEqual(left, { keys: [], prefixes: [], next: undefined }, "the folder that the copy made is no object");
  });

  test("lists go by bytes, in pages, by groups", async () => {
    const all = ["l/a", "l/a.b", "l/a/b", "l/a/c/d", "l/a0", "l/ä", "l/z/", "l/\u{1F600}", "l/\uFF01"];
    for (const key of all) {
      if (key === "l/a") continue; // a file and a folder of one name cannot both be
      await put(key, key.endsWith("/") ? "" : "x");
    }
    await fails(put("l/a", "x"), "InvalidRequest");
    await fails(put("l/a0/below", "x"), "InvalidRequest");
    const expected = all
      .filter((key) => key !== "l/a")
      .sort((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)));
    assert.deepEqual((await list({ Prefix: "l/" })).keys, expected);
    for (const MaxKeys of [1, 2, 3]) {
      const found: (string | undefined)[] = [];
      let ContinuationToken: string | undefined;
      do {
        const page = await list({ Prefix: "l/", MaxKeys, ...(ContinuationToken ? { ContinuationToken } : {}) });
        found.push(...page.keys);
        ContinuationToken = page.next;
      } while (ContinuationToken);
      assert.deepEqual(found, expected);
    }
    const grouped = await list({ Prefix: "l/", Delimiter: "/" });
    assert.deepEqual(grouped.prefixes, ["l/a/", "l/z/"]);
    assert.deepEqual(grouped.keys, ["l/a.b", "l/a0", "l/ä", "l/\uFF01", "l/\u{1F600}"]);
    const page = await list({ Prefix: "l/", Delimiter: "/", MaxKeys: 2 });
    assert.deepEqual([page.keys, page.prefixes], [["l/a.b"], ["l/a/"]]);
    const second = await list({ Prefix: "l/", Delimiter: "/", MaxKeys: 2, ContinuationToken: page.next ?? "" });
    assert.deepEqual([second.keys, second.prefixes], [["l/a0"], ["l/z/"]]);
    assert.deepEqual((await list({ Prefix: "l/", StartAfter: "l/a/b" })).keys, expected.slice(2));
    assert.deepEqual((await list({ Prefix: "l/", Delimiter: "a" })).prefixes, ["l/a"]);
    assert.deepEqual((await list({ Prefix: "l/../" })).keys, []);
    const old = await client.send(new s3.ListObjectsCommand({ Bucket, Prefix: "l/", MaxKeys: 3 }));
    assert.deepEqual([old.Contents?.length, old.IsTruncated, old.NextMarker], [3, true, expected[2]]);
    const encoded = await client.send(new s3.ListObjectsV2Command({ Bucket, Prefix: "l/ä", EncodingType: "url" }));
    assert.equal(encoded.Contents?.[0]?.Key, "l/%C3%A4");
  });

  test("no link that a workload made leads out of its drive", async () => {
    mkdirSync(join(dir, "trap"));
    symlinkSync("/etc/passwd", join(dir, "trap/passwd"));
    symlinkSync("/etc", join(dir, "trap/etc"));
    symlinkSync(elsewhere, join(dir, "trap/drive"));
    symlinkSync("/etc/passwd", join(dir, "trap/target"));
    for (const Key of ["trap/passwd", "trap/etc/passwd", "trap/drive/secret"]) {
      await fails(text(Key), "NoSuchKey");
      await assert.rejects(client.send(new s3.HeadObjectCommand({ Bucket, Key })), { name: "NotFound" });
      await fails(
        client.send(new s3.CopyObjectCommand({ Bucket, Key: "y", CopySource: `${Bucket}/${Key}` })),
        "NoSuchKey",
      );
      await client.send(new s3.DeleteObjectCommand({ Bucket, Key }));
    }
    assert.deepEqual((await list({ Prefix: "trap/" })).keys, []);
    assert.deepEqual((await list({ Prefix: "trap/drive/" })).keys, []);
    assert.deepEqual((await list({ Prefix: "trap/", Delimiter: "/" })).prefixes, []);
    await fails(put("trap/drive/written", "x"), "InvalidRequest");
    await fails(put("trap/drive/secret", "x"), "InvalidRequest");
    await put("trap/target", "a file in place of the link");
    assert.equal(readFileSync(join(dir, "trap/target"), "utf8"), "a file in place of the link");
    assert.equal(readFileSync(join(elsewhere, "secret"), "utf8"), "of another drive");
    assert.match(readFileSync("/etc/passwd", "utf8"), /^root:/);
  });

  test("a bucket answers what clients ask first, and says what it does not have", async () => {
    assert.deepEqual(
      (await client.send(new s3.ListBucketsCommand({}))).Buckets?.map(({ Name }) => Name),
      [Bucket],
    );
    await client.send(new s3.HeadBucketCommand({ Bucket }));
    const { LocationConstraint } = await client.send(new s3.GetBucketLocationCommand({ Bucket }));
    assert.equal(LocationConstraint, "local");
    assert.equal((await client.send(new s3.GetBucketVersioningCommand({ Bucket }))).Status, undefined);
    await fails(client.send(new s3.GetBucketPolicyCommand({ Bucket })), "NoSuchBucketPolicy");
    await fails(client.send(new s3.GetBucketAclCommand({ Bucket })), "NotImplemented");
    await fails(client.send(new s3.ListObjectVersionsCommand({ Bucket })), "NotImplemented");
    await fails(client.send(new s3.DeleteBucketCommand({ Bucket })), "NotImplemented");
    await fails(put("acl", "x", { ACL: "public-read" }), "NotImplemented");
    await fails(put("sse", "x", { ServerSideEncryption: "AES256" }), "NotImplemented");
    await assert.rejects(client.send(new s3.HeadBucketCommand({ Bucket: "other" })), { name: "NotFound" });
    await fails(client.send(new s3.ListObjectsV2Command({ Bucket: "other" })), "NoSuchBucket");
  });

  test("keys that cannot be files are refused", async () => {
    for (const Key of ["a//b", "a/./b", "x/../y", "/lead"]) await fails(put(Key, "x"), "InvalidArgument");
    for (const Key of ["k".repeat(1025), "k".repeat(256)]) await fails(put(Key, "x"), "KeyTooLongError");
    await fails(put("folder/", "content"), "InvalidArgument");
    await put("n".repeat(255), "x");
    const deep = `${"d/".repeat(60)}${"e".repeat(255)}`;
    await put(deep, "deep");
    assert.equal(await text(deep), "deep");
  });
});
