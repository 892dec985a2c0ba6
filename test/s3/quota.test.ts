/** The quota of a workspace for what its drives hold: bytes and objects, through S3 and by files of mounts. */
import assert from "node:assert/strict";
import { mkdirSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import * as s3 from "@aws-sdk/client-s3";
import { DriveUses } from "../../src/kinds/drive/drive-uses.ts";
import { WorkspaceUse } from "../../src/kinds/drive/workspace-use.ts";
import { folderUse } from "../../src/lib/disk/folder-use.ts";
import { FakeMachine, fakeDriver } from "../fake-driver.ts";
import { openDoor, type TestDoor } from "./bucket.ts";

const MB = 2 ** 20;
const OBJECTS_MAX = 5;

describe("the quota of drives", () => {
  const machine = new FakeMachine({ images: ["service/base-image:latest"] });
  const driver = fakeDriver(machine);
  let door: TestDoor;
  let client: s3.S3Client;
  let folder = "";
  const put = (Key: string, bytes: number, to = client) =>
    to.send(new s3.PutObjectCommand({ Bucket: "one", Key, Body: Buffer.alloc(bytes, Key) }));
  const refused = (work: Promise<unknown>) =>
    assert.rejects(work, (error: s3.S3ServiceException) => {
      assert.deepEqual([error.name, error.$metadata.httpStatusCode], ["QuotaExceeded", 403], error.message);
      return true;
    });
  const remove = (...keys: string[]) =>
    Promise.all(keys.map((Key) => client.send(new s3.DeleteObjectCommand({ Bucket: "one", Key }))));
  /** Another count of the same files, as the periodic task makes it. */
  const recount = async (): Promise<void> => {
    const { store } = door.platform.app;
    const nodes = {
      self: { id: (await store.resources.listNested("main", "drive", 1))[0]?.node ?? "" },
      shared: false,
    };
    const settings = { nodeId: "", driveQuota: { bytes: 8 * MB, objects: OBJECTS_MAX } };
    await new DriveUses({ store, driver, nodes, settings } as unknown as ConstructorParameters<
      typeof DriveUses
    >[0]).recount();
  };

  before(async () => {
    door = await openDoor({ driver, config: { quotas: `drive_mb=8,drive_objects=${OBJECTS_MAX}` } });
    const { uid } = await door.drive("one");
    folder = join(machine.dir, "drives", uid);
    // A workload wrote this before anybody used the drive through S3.
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "mounted"), Buffer.alloc(MB, 1));
    writeFileSync(join(folder, "holes"), "");
    truncateSync(join(folder, "holes"), 100 * MB);
    client = door.client(await door.keys("one"));
  });
  after(async () => {
    await door?.[Symbol.asyncDispose]();
    await machine.dispose();
  });

  test("files that were there count, those with holes by the space they take", async () => {
    await refused(put("large", 8 * MB));
    await put("large", 6 * MB);
    await refused(put("more", 2 * MB));
    await remove("large");
    await put("more", 2 * MB);
    await remove("more");
  });

  test("deleting a file with holes gives back what it took, and no more", async () => {
    await remove("holes");
    await refused(put("large", 8 * MB));
  });

  test("of many writers at once as many win as there is room for, and a refused body takes nothing", async () => {
    const sent = await Promise.allSettled(Array.from({ length: 4 }, (_, n) => put(`w${n}`, 3 * MB)));
    assert.equal(sent.filter(({ status }) => status === "fulfilled").length, 2);
    await remove("w0", "w1", "w2", "w3");
    await assert.rejects(
      client.send(
        new s3.PutObjectCommand({
          Bucket: "one",
          Key: "bad",
          Body: Buffer.alloc(6 * MB),
          ContentMD5: "1B2M2Y8AsgTpgAmY7PhCfg==",
        }),
      ),
      { name: "BadDigest" },
    );
    await put("good", 6 * MB);
    await put("good", MB);
    await put("also", 5 * MB);
    await remove("good", "also");
  });

  test("parts count until the upload ends, and completing it needs no more room", async () => {
    const object = { Bucket: "one", Key: "parts" };
    const begin = async () => (await client.send(new s3.CreateMultipartUploadCommand(object))).UploadId ?? "";
    const part = (UploadId: string, PartNumber: number, bytes: number) =>
      client.send(new s3.UploadPartCommand({ ...object, UploadId, PartNumber, Body: Buffer.alloc(bytes, 7) }));
    const given = await begin();
    await part(given, 1, 5 * MB);
    await part(given, 1, 2 * MB);
    await part(given, 2, 4 * MB);
    await refused(part(given, 3, 2 * MB));
    await client.send(new s3.AbortMultipartUploadCommand({ ...object, UploadId: given }));
    const raced = await begin();
    await part(raced, 1, 5 * MB);
    await Promise.all(Array.from({ length: 6 }, () => part(raced, 1, 0)));
    await part(raced, 2, 5 * MB);
    const abort = () => client.send(new s3.AbortMultipartUploadCommand({ ...object, UploadId: raced }));
    await Promise.allSettled(Array.from({ length: 6 }, abort));
    await refused(put("more", 7 * MB + 1)); // each part is given back once, however many end it at once
    const UploadId = await begin();
    const [one, two] = [await part(UploadId, 1, 5 * MB), await part(UploadId, 2, MB)];
    const Parts = [one, two].map(({ ETag }, at) => ({ ETag, PartNumber: at + 1 }));
    await client.send(new s3.CompleteMultipartUploadCommand({ ...object, UploadId, MultipartUpload: { Parts } }));
    await refused(put("more", 2 * MB));
    await remove("parts");
    await put("more", 6 * MB);
    await remove("more");
  });

  test("what is deleted while files are counted is not given back twice", () => {
    const use = new WorkspaceUse({ bytes: 8, objects: null }, { bytes: 8, objects: 1 });
    const end = use.beginRecount();
    use.add(-8, -1);
    end({ bytes: 0, objects: 0 });
    assert.equal(use.take(8, 1), null);
    assert.match(use.take(1, 0) ?? "", /may hold/);
  });

  test("objects are counted, an object that is replaced once", async () => {
    for (const key of ["a", "b", "b", "sub/c", "d/"]) await put(key, key === "d/" ? 0 : 1);
    await refused(put("e", 1));
    await refused(put("e/", 0));
    await put("a", 2);
    await remove("a");
    await put("e", 1);
    await remove("b", "sub/c", "d/", "e");
  });

  test("the record and the quotas of the API tell the last count, and a full workspace makes no further drive", async () => {
    writeFileSync(join(folder, "grown"), Buffer.alloc(8 * MB, 1));
    await recount();
    const { call } = door.platform;
    const { body } = await call("GET", "/drives/one");
    const held = await folderUse(folder);
    assert.deepEqual([body.state.usedObjects, held.objects], [3, 3], "two files, and sub is an empty folder");
    assert.equal(body.state.usedBytes, 9 * MB);
    const { quotas } = (await call("GET", "/quotas")).body as unknown as { quotas: { resource: string }[] };
    assert.deepEqual(
      quotas.filter(({ resource }) => resource.startsWith("drive_")),
      [
        { resource: "drive_mb", limit: 8, used: 9, remaining: 0 },
        { resource: "drive_objects", limit: OBJECTS_MAX, used: 3, remaining: 2 },
      ],
    );
    const full = await call("POST", "/drives", { body: { metadata: { name: "two" }, spec: {} } });
    assert.deepEqual([full.status, full.body.error], [507, "insufficient_storage"]);
    rmSync(join(folder, "grown"));
    await remove("sub/"); // no list shows it, but it counts
    await recount();
    assert.equal((await call("GET", "/drives/one")).body.state.usedObjects, 1);
    const made = await call("POST", "/drives", { body: { metadata: { name: "two" }, spec: {} } });
    assert.equal(made.status, 200, JSON.stringify(made.body));
  });
});
