/** Attacks on the S3 door by somebody who has credentials for a drive, and by somebody who has none. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer, get } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import * as s3 from "@aws-sdk/client-s3";
import { FailedTries } from "../../src/lib/failed-tries.ts";
import { DAY_MS, MINUTE_MS } from "../../src/lib/time/clock.ts";
import { DriveObjects } from "../../src/s3/files/drive-objects.ts";
import { listPage } from "../../src/s3/files/listing.ts";
import { NO_METER } from "../../src/s3/files/use-meter.ts";
import { createListTurns } from "../../src/s3/list-turns.ts";
import type { S3Deps } from "../../src/s3/s3-handler.ts";
import { FakeMachine, fakeDriver } from "../fake-driver.ts";
import { BARE_BUCKET, bareKeys, bareSession, openBareDoor } from "../s3/bare-door.ts";
import { openDoor } from "../s3/bucket.ts";
import { presigned, sendRaw } from "../s3/signed-request.ts";

const DEPTH = 150;
const LISTS = 8;
/** Four lists of a workspace at once, with the folders and the folder streams that each holds, and two ends of sockets. */
const DESCRIPTORS_MAX = 4 * 50 + 2 * LISTS;
const codeIn = (xml: string): string | undefined => /<Code>(\w+)<\/Code>/.exec(xml)?.[1];
const descriptors = (): number => readdirSync("/proc/self/fd").length;

describe("attacks on the S3 door", () => {
  const foldersFor = (t: TestContext) => {
    const dir = mkdtempSync(join(tmpdir(), "berth-s3-attack-"));
    t.after(() => rmSync(dir, { recursive: true, force: true }));
    const folders = { files: join(dir, "files"), work: join(dir, "work") };
    for (const each of Object.values(folders)) mkdirSync(each);
    return folders;
  };
  const bareDoor = async (t: TestContext, folders: { files: string; work: string }, changed: Partial<S3Deps> = {}) => {
    const listener = await openBareDoor(folders, changed);
    t.after(() => listener.stop());
    return bareKeys(listener.port);
  };
  test("a request with the id of a key and a wrong signature is no use of the key", async (t) => {
    const session = await bareSession("KEY");
    const uses: string[] = [];
    const keys = await bareDoor(t, foldersFor(t), {
      sessionOf: async (accessKeyId) => session && { ...session, noteUse: () => void uses.push(accessKeyId) },
    });
    const list = (secretAccessKey: string) =>
      sendRaw(keys.endpoint, "GET", presigned({ ...keys, secretAccessKey }, "GET", "/"));
    assert.equal(codeIn((await list("guessed")).body), "SignatureDoesNotMatch");
    assert.deepEqual(uses, []);
    assert.equal((await list(keys.secretAccessKey)).status, 200);
    assert.deepEqual(uses, ["KEY"]);
  });

  test(`lists of a tree of ${DEPTH} folders, one in the other, hold few descriptors, however many run`, async (t) => {
    const folders = foldersFor(t);
    const deepest = join(folders.files, ...Array.from({ length: DEPTH }, () => "d"));
    mkdirSync(deepest, { recursive: true });
    writeFileSync(join(deepest, "f"), "");
    const keys = await bareDoor(t, folders);
    const key = `${"d/".repeat(DEPTH)}f`;
    const list = (query: Record<string, string>) =>
      sendRaw(keys.endpoint, "GET", presigned(keys, "GET", `/${BARE_BUCKET}`, { query }));
    const idle = descriptors();
    let [most, isOver] = [0, false];
    const watching = (async () => {
      while (!isOver) {
        most = Math.max(most, descriptors() - idle);
        await delay(3);
      }
    })();
    const queries = Array.from({ length: LISTS }, (_, index) => ({
      "list-type": "2",
      ...(index % 2 === 0 && { delimiter: "/" }),
    }));
    const answers = await Promise.all(queries.map(list)).finally(() => {
      isOver = true;
    });
    await watching;
    for (const [index, { status, body }] of answers.entries()) {
      assert.equal(status, 200, body);
      assert.ok(body.includes(index % 2 === 0 ? "<Prefix>d/</Prefix>" : `<Key>${key}</Key>`), body);
    }
    assert.ok(most < DESCRIPTORS_MAX, `${most} descriptors`);
  });

  test("a list ends with its client, and its place goes to the next one", async (t) => {
    const turnOf = createListTurns();
    const ended = new Set<string>();
    const server = createServer((req, res) => {
      const name = req.url ?? "";
      void turnOf(
        "main",
        res,
      )(async (signal) => {
        if (name === "/last") return;
        await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      })
        .catch(() => ended.add(name))
        .finally(() => res.end());
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    t.after(() => server.close());
    const { port } = server.address() as AddressInfo;
    const ask = (path: string) => get({ host: "127.0.0.1", port, path, agent: false }).on("error", () => {});
    const walkers = await Promise.all(
      ["/0", "/1", "/2", "/3", "/4"].map(async (path) => {
        const walker = ask(path);
        await new Promise((resolve) => server.once("request", resolve));
        return walker;
      }),
    );
    const answered = new Promise((resolve) => ask("/last").on("response", resolve));
    for (const walker of walkers) walker.destroy();
    await answered;
    assert.deepEqual([...ended].sort(), ["/0", "/1", "/2", "/3", "/4"]);
  });

  test("the walk of a list stops at the signal", async (t) => {
    const folders = foldersFor(t);
    for (let index = 0; index < 50; index += 1) writeFileSync(join(folders.files, `f${index}`), "");
    const objects = await DriveObjects.open(folders, {
      clock: { now: () => 0 },
      requireRoom: () => {},
      meter: NO_METER,
    });
    const left = new AbortController();
    const query = { prefix: "", delimiter: "", after: "", max: 1000, floor: [], signal: left.signal };
    assert.equal((await listPage(objects, query)).entries.length, 50);
    left.abort(new Error("left"));
    await assert.rejects(listPage(objects, query), /left/);
  });

  test("a drive has a thousand unfinished uploads and no more, and they end after a week", async (t) => {
    const folders = foldersFor(t);
    let now = Date.now();
    const clock = { now: () => now };
    const keys = await bareDoor(t, folders, { clock });
    const send = (method: string, query: Record<string, string>) =>
      sendRaw(keys.endpoint, method, presigned(keys, method, `/${BARE_BUCKET}/k`, { query, nowMs: now }));
    const first = await send("POST", { uploads: "" });
    const uploadId = /<UploadId>(\w+)</.exec(first.body)?.[1] ?? "";
    assert.equal((await send("GET", { uploadId })).status, 200);
    const uploads = join(folders.work, "uploads");
    for (let index = 1; index < 1000; index += 1) {
      const dir = join(uploads, String(index).padStart(32, "0"));
      mkdirSync(dir);
      writeFileSync(join(dir, "upload.json"), JSON.stringify({ id: String(index), key: "k", startedMs: now }));
    }
    const refused = await send("POST", { uploads: "" });
    assert.deepEqual([refused.status, codeIn(refused.body)], [400, "InvalidRequest"], refused.body);
    assert.equal(readdirSync(uploads).length, 1000);
    now += 7 * DAY_MS;
    assert.equal(codeIn((await send("GET", { uploadId })).body), "NoSuchUpload");
    assert.ok(!readdirSync(uploads).includes(uploadId), "its parts are gone");
    const list = presigned(keys, "GET", `/${BARE_BUCKET}`, { query: { uploads: "" }, nowMs: now });
    assert.doesNotMatch((await sendRaw(keys.endpoint, "GET", list)).body, /<Upload>/);
  });

  test("an upload is refused in the middle when the disk runs short meanwhile", async (t) => {
    const folders = foldersFor(t);
    let looks = 0;
    const shortage = () => (++looks > 1 ? "The disk is nearly full." : null);
    const keys = await bareDoor(t, folders, { shortage });
    const path = presigned(keys, "PUT", `/${BARE_BUCKET}/large`);
    const { status, body } = await sendRaw(keys.endpoint, "PUT", path, { body: "x".repeat(9 * 2 ** 20) });
    assert.deepEqual([status, codeIn(body)], [507, "InsufficientStorage"]);
    assert.deepEqual([readdirSync(folders.files), readdirSync(join(folders.work, "staged"))], [[], []]);
  });

  test("wrong credentials are looked at so many times a minute; right ones of the same address go on", async (t) => {
    const folders = foldersFor(t);
    let now = Date.now();
    const clock = { now: () => now };
    let exchanges = 0;
    const exchange = async () => {
      exchanges += 1;
      return null;
    };
    const keys = await bareDoor(t, folders, { clock, exchange, tries: new FailedTries(clock, 3) });
    const ask = async (each: typeof keys) => {
      const { body, status } = await sendRaw(
        each.endpoint,
        "GET",
        presigned(each, "GET", `/${BARE_BUCKET}`, { nowMs: now }),
      );
      return codeIn(body) ?? status;
    };
    assert.equal(await ask(keys), 200);
    assert.equal(await ask({ ...keys, secretAccessKey: "guess" }), "SignatureDoesNotMatch");
    assert.equal(await ask({ ...keys, accessKeyId: "OTHER" }), "ExpiredToken");
    const form = { "content-type": "application/x-www-form-urlencoded" };
    const sts = async () => {
      const body = "Action=AssumeRoleWithWebIdentity&WebIdentityToken=guess";
      return codeIn((await sendRaw(keys.endpoint, "POST", "/", { headers: form, body })).body);
    };
    assert.equal(await sts(), "InvalidIdentityToken");
    assert.deepEqual([await sts(), exchanges], ["SlowDown", 1]);
    assert.equal(await ask({ ...keys, accessKeyId: "OTHER" }), "SlowDown");
    assert.equal(await ask(keys), 200);
    now += MINUTE_MS;
    assert.equal(await sts(), "InvalidIdentityToken");
  });

  test("changes through the door, refused ones too, and exchanged tokens are in the audit log", async (t) => {
    const machine = new FakeMachine();
    t.after(() => machine.dispose());
    await using door = await openDoor({ driver: fakeDriver(machine) });
    await door.drive("told", { permissions: [{ mode: "read-write", path: "/a" }] });
    const keys = await door.keys("told");
    const client = door.client(keys);
    const Bucket = "told";
    await client.send(new s3.PutObjectCommand({ Bucket, Key: "a/k", Body: "x" }));
    await client.send(new s3.GetObjectCommand({ Bucket, Key: "a/k" }));
    await client.send(new s3.DeleteObjectCommand({ Bucket, Key: "a/k" }));
    await assert.rejects(client.send(new s3.PutObjectCommand({ Bucket, Key: "a/./k", Body: "x" })));
    const { body } = await door.platform.call("POST", "/drives/told/access-token", { workspace: "main" });
    const token = encodeURIComponent(body.token ?? body.access_token);
    const exchanged = await sendRaw(keys.endpoint, "POST", "/", {
      headers: { "content-type": "application/x-www-form-urlencoded" },
      body: `Action=AssumeRoleWithWebIdentity&WebIdentityToken=${token}`,
    });
    assert.equal(exchanged.status, 200, exchanged.body);
    const lines = await door.platform.app.store.audit.list({ workspace: "main", limit: 5 });
    const told = lines.map(({ action, target, outcome, actor, sourceAddress }) => {
      assert.ok(actor !== "" && sourceAddress === "127.0.0.1", `${actor} ${sourceAddress}`);
      return [action, target, outcome];
    });
    assert.deepEqual(told.reverse(), [
      ["s3PutObject", "told/a/k", "ok"],
      ["s3DeleteObject", "told/a/k", "ok"],
      ["s3PutObject", "told/a/./k", "failed"],
      ["driveAccessToken", "told", "ok"],
      ["s3AssumeRoleWithWebIdentity", "told", "ok"],
    ]);
  });
});
