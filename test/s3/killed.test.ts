/** The S3 door as a process of its own: killed in the middle of writes, and watched while large objects pass. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { after, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import * as s3 from "@aws-sdk/client-s3";
import { closeAtEnd } from "../closing.ts";
import { LONG } from "../long.ts";
import { BARE_BUCKET as Bucket, bareKeys } from "./bare-door.ts";
import type { S3Keys } from "./bucket.ts";
import { presigned } from "./signed-request.ts";

const MB = 2 ** 20;
const LARGE_BYTES = LONG ? 5 * 2 ** 30 : 192 * MB;
/** The heap of a process that passes chunks on may grow by some lots of garbage, and never with the object. */
const GROWTH_BYTES_MAX = 150 * MB;

describe("the S3 door in a process of its own", () => {
  const dir = mkdtempSync(join(tmpdir(), "berth-s3-"));
  const [files, work] = [join(dir, "files"), join(dir, "work")];
  for (const each of [files, work]) mkdirSync(each);
  after(() => rmSync(dir, { recursive: true, force: true }));

  async function open() {
    const child = spawn(process.execPath, [join(import.meta.dirname, "door-process.ts"), files, work], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const closed = closeAtEnd(() => child.kill("SIGKILL"));
    const [port] = (await once(child.stdout, "data")) as [Buffer];
    const keys = bareKeys(Number(port));
    const credentials = { accessKeyId: "KEY", secretAccessKey: "secret", sessionToken: "token" };
    const client = new s3.S3Client({ endpoint: keys.endpoint, region: "local", credentials, maxAttempts: 1 });
    return {
      ...{ child, client, keys },
      async kill() {
        client.destroy();
        const ended = once(child, "exit");
        child.kill("SIGKILL");
        await ended;
        closed();
      },
    };
  }

  test("after a kill an acknowledged object is whole, and an unfinished one absent", async () => {
    const first = await open();
    const { client, keys } = first;
    const whole = Buffer.alloc(MB, "whole");
    await client.send(new s3.PutObjectCommand({ Bucket, Key: "whole", Body: whole }));
    const upload = { Bucket, Key: "in/parts" };
    const { UploadId } = await client.send(new s3.CreateMultipartUploadCommand(upload));
    const part = { ...upload, UploadId, PartNumber: 1 };
    const { ETag } = await client.send(new s3.UploadPartCommand({ ...part, Body: whole }));
    const cut = ["cut", "whole"].map((key) => sendHalf(keys, `/${Bucket}/${key}`));
    while (stagedBytes(work) < 2 * MB) await delay(5);
    const writers = Promise.allSettled(
      Array.from({ length: 200 }, async (_, index) => {
        await client.send(new s3.PutObjectCommand({ Bucket, Key: `many/${index}`, Body: bodyOf(index) }));
        return index;
      }),
    );
    while (writtenKeys(files) < 10) await delay(1);
    await first.kill();
    for (const each of cut) each.destroy();
    const acknowledged = (await writers).flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));

    const second = await open();
    const { Contents = [] } = await second.client.send(new s3.ListObjectsV2Command({ Bucket }));
    const there = Contents.map(({ Key = "" }) => Key);
    assert.ok(there.includes("whole") && !there.includes("cut") && !there.includes("in/parts"), there.join());
    assert.ok(readFileSync(join(files, "whole")).equals(whole), "what was to replace it is gone");
    for (const index of acknowledged) assert.ok(there.includes(`many/${index}`), `many/${index} was acknowledged`);
    for (const key of there.filter((one) => one.startsWith("many/"))) {
      const index = Number(key.slice(5));
      assert.ok(readFileSync(join(files, key)).equals(bodyOf(index)), `${key} is whole`);
    }
    assert.deepEqual(readdirSync(join(work, "staged")), []);
    const Parts = [{ PartNumber: 1, ETag }];
    await second.client.send(
      new s3.CompleteMultipartUploadCommand({ ...upload, UploadId, MultipartUpload: { Parts } }),
    );
    assert.ok(readFileSync(join(files, "in/parts")).equals(whole), "a part that was acknowledged was kept");
    await second.kill();
  });

  test(`an object of ${LARGE_BYTES / MB} MB passes in bounded memory`, async () => {
    const { child, client, kill } = await open();
    await client.send(new s3.PutObjectCommand({ Bucket, Key: "small", Body: "warm" }));
    const before = peakBytes(child);
    const chunk = Buffer.alloc(MB, 7);
    const Body = Readable.from(
      Array.from({ length: LARGE_BYTES / MB }, () => chunk),
      { objectMode: false },
    );
    await client.send(new s3.PutObjectCommand({ Bucket, Key: "large", Body, ContentLength: LARGE_BYTES }));
    assert.equal(statSync(join(files, "large")).size, LARGE_BYTES);
    const got = await client.send(new s3.GetObjectCommand({ Bucket, Key: "large" }));
    let bytes = 0;
    for await (const each of got.Body as Readable) bytes += (each as Buffer).length;
    assert.equal(bytes, LARGE_BYTES);
    const grown = peakBytes(child) - before;
    assert.ok(grown < GROWTH_BYTES_MAX, `the process grew by ${Math.round(grown / MB)} MB`);
    await kill();
  });
});

const bodyOf = (index: number): Buffer => Buffer.alloc(20_000 + index, `object ${index} `);

/** Sends half of what it announces, and waits. */
function sendHalf(keys: S3Keys, path: string) {
  const { hostname, port } = new URL(keys.endpoint);
  const headers = { "content-length": String(4 * MB) };
  const req = request({
    host: hostname,
    port,
    method: "PUT",
    path: presigned(keys, "PUT", path),
    headers,
    agent: false,
  });
  req.on("error", () => {}); // the server is killed
  req.write(Buffer.alloc(2 * MB, "cut"));
  return req;
}

const stagedBytes = (work: string): number =>
  readdirSync(join(work, "staged")).reduce(
    (sum, name) => sum + (statSync(join(work, "staged", name), { throwIfNoEntry: false })?.size ?? 0),
    0,
  );

function writtenKeys(files: string): number {
  try {
    return readdirSync(join(files, "many")).length;
  } catch {
    return 0; // not yet
  }
}

const peakBytes = ({ pid }: ChildProcess): number =>
  Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * 1024;
