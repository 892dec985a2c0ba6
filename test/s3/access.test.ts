/** Who may do what at the S3 door, asked again on every request. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, describe, test } from "node:test";
import * as s3 from "@aws-sdk/client-s3";
import { HOUR_MS } from "../../src/lib/time/clock.ts";
import { spawnBerth } from "../berth-process.ts";
import { makeUser } from "../identities.ts";
import { openDoor, type S3Keys, type TestDoor } from "./bucket.ts";
import { presigned, sendRaw } from "./signed-request.ts";

const codeIn = (xml: string): string | undefined => /<Code>(\w+)<\/Code>/.exec(xml)?.[1];

describe("access to drives by S3", () => {
  let door: TestDoor;
  let aheadMs = 0;
  const now = (): number => Date.now() + aheadMs;
  const fails = (work: Promise<unknown>, name: string) => assert.rejects(work, { name });
  const put = (client: s3.S3Client, Bucket: string, Key: string, Body = "x") =>
    client.send(new s3.PutObjectCommand({ Bucket, Key, Body }));
  const keysOf = async (client: s3.S3Client, Bucket: string, more: object = {}) => {
    const page = await client.send(new s3.ListObjectsV2Command({ Bucket, ...more }));
    return [page.Contents?.map(({ Key }) => Key) ?? [], page.CommonPrefixes?.map(({ Prefix }) => Prefix) ?? []];
  };
  /** A member of the workspace, who gets what the permissions give to a workload without labels. */
  const member = (scopes: string[] | null = null) =>
    makeUser(door.platform.app.store, null, "member", { main: "member" }, scopes);

  before(async () => {
    door = await openDoor({ clock: { now } });
    await door.drive("open");
  });
  after(() => door[Symbol.asyncDispose]());

  test("a rule's path bounds keys and lists, its mode writes", async () => {
    await door.drive("ruled", { permissions: [{ mode: "read-write", path: "/team/a" }] });
    await door.drive("readable", { permissions: [{ mode: "read" }] });
    await door.drive("closed", { permissions: [{ labels: { team: "x" } }] });
    const admin = door.client(await door.keys("ruled"));
    for (const key of ["top", "team/b", "team/a/1", "team/a/sub/2", "team/ab"]) await put(admin, "ruled", key);
    const { key } = await member();
    const limited = door.client(await door.keys("ruled", key));
    assert.deepEqual(await keysOf(limited, "ruled"), [["team/a/1", "team/a/sub/2"], []]);
    assert.deepEqual(await keysOf(limited, "ruled", { Delimiter: "/" }), [[], ["team/"]]);
    assert.deepEqual(await keysOf(limited, "ruled", { Delimiter: "/", Prefix: "team/" }), [[], ["team/a/"]]);
    assert.deepEqual(await keysOf(limited, "ruled", { Delimiter: "/", Prefix: "team/a/" }), [
      ["team/a/1"],
      ["team/a/sub/"],
    ]);
    assert.deepEqual(await keysOf(limited, "ruled", { Prefix: "t" }), [["team/a/1", "team/a/sub/2"], []]);
    for (const Prefix of ["top", "team/b", "team/ab", "team/a/../"])
      assert.deepEqual(await keysOf(limited, "ruled", { Prefix }), [[], []], Prefix);
    await put(limited, "ruled", "team/a/new");
    for (const Key of ["top", "team/b", "team/ab", "team/a"]) {
      await fails(put(limited, "ruled", Key), "AccessDenied");
      await fails(limited.send(new s3.GetObjectCommand({ Bucket: "ruled", Key })), "AccessDenied");
      const copy = { Bucket: "ruled", Key: "team/a/c", CopySource: `ruled/${Key}` };
      await fails(limited.send(new s3.CopyObjectCommand(copy)), "AccessDenied");
      await fails(limited.send(new s3.CreateMultipartUploadCommand({ Bucket: "ruled", Key })), "AccessDenied");
    }
    const Delete = { Objects: [{ Key: "top" }, { Key: "team/a/1" }] };
    const deleted = await limited.send(new s3.DeleteObjectsCommand({ Bucket: "ruled", Delete }));
    assert.deepEqual(
      [deleted.Deleted?.map(({ Key }) => Key), deleted.Errors?.map(({ Code }) => Code)],
      [["team/a/1"], ["AccessDenied"]],
    );
    const reader = door.client(await door.keys("readable", key));
    await keysOf(reader, "readable");
    for (const command of [
      new s3.PutObjectCommand({ Bucket: "readable", Key: "a", Body: "x" }),
      new s3.CreateMultipartUploadCommand({ Bucket: "readable", Key: "a" }),
    ])
      await fails(reader.send(command as s3.PutObjectCommand), "AccessDenied");
    await fails(reader.send(new s3.DeleteObjectCommand({ Bucket: "readable", Key: "a" })), "AccessDenied");
    const scoped = await member(["drives:get"]);
    await fails(put(door.client(await door.keys("open", scoped.key)), "open", "a"), "AccessDenied");
    await assert.rejects(door.keys("closed", key), /403/);
  });

  test("credentials end with their time, their maker, his key, and the rights behind them", async () => {
    const { app, call } = door.platform;
    const { key, sub } = await member();
    const client = door.client(await door.keys("open", key));
    await put(client, "open", "mine");
    const before = await call("GET", "/drives/open");
    const spec = { ...before.body.spec, permissions: [{ mode: "read" }] };
    await call("PUT", "/drives/open", { body: { metadata: { name: "open" }, spec } });
    await fails(put(client, "open", "mine"), "ExpiredToken");
    await call("PUT", "/drives/open", { body: { metadata: { name: "open" }, spec: { ...spec, permissions: [] } } });
    await put(client, "open", "mine");
    await app.store.write((tx) => app.store.people.removeMember(tx, "main", sub));
    await fails(put(client, "open", "mine"), "ExpiredToken");
    const other = await member();
    const keyed = door.client(await door.keys("open", other.key));
    await put(keyed, "open", "mine");
    const found = await app.store.keys.findKey(other.key);
    await app.store.keys.removeKey("user", other.sub, found?.id ?? "");
    await fails(put(keyed, "open", "mine"), "ExpiredToken");
    const admin = await door.keys("open");
    aheadMs += HOUR_MS + 1000;
    const late = presigned(admin, "GET", "/open/mine", { nowMs: now() });
    assert.equal(codeIn((await sendRaw(admin.endpoint, "GET", late)).body), "ExpiredToken");
    aheadMs = 0;
    await door.drive("gone");
    const gone = door.client(await door.keys("gone"));
    await put(gone, "gone", "a");
    await call("DELETE", "/drives/gone");
    await fails(put(gone, "gone", "a"), "ExpiredToken");
  });

  test("presigned addresses work for anybody until their end, for their method and key alone", async () => {
    const keys = await door.keys("open");
    const send = (method: string, path: string, more = {}) => sendRaw(keys.endpoint, method, path, more);
    const body = "by address";
    const headers = { "content-length": String(body.length), expect: "100-continue" };
    assert.equal((await send("PUT", presigned(keys, "PUT", "/open/a b/ü"), { body, headers })).status, 200);
    const fixed = { "X-Amz-Content-Sha256": createHash("sha256").update(body).digest("hex") };
    const bound = presigned(keys, "PUT", "/open/bound", { query: fixed });
    assert.equal((await send("PUT", bound, { body })).status, 200);
    const other = await send("PUT", bound, { body: "BY ADDRESS" });
    assert.equal(codeIn(other.body), "XAmzContentSHA256Mismatch", "the address is for this content alone");
    const address = presigned(keys, "GET", "/open/a b/ü", { query: { "response-content-type": "text/html" } });
    const got = await send("GET", address);
    assert.deepEqual([got.status, got.body, got.headers["content-type"]], [200, body, "text/html"]);
    assert.equal(got.headers["content-security-policy"], "sandbox", "a page of a tenant runs no scripts");
    const cases: [string, string, string][] = [
      ["DELETE", address, "SignatureDoesNotMatch"],
      ["GET", address.replace("/a%20b", "/other"), "SignatureDoesNotMatch"],
      ["GET", address.replace("text%2Fhtml", "text%2Fcss"), "SignatureDoesNotMatch"],
      ["GET", presigned(keys, "GET", "/open/a", { nowMs: now() - 120_000 }), "AccessDenied"],
      ["GET", presigned({ ...keys, secretAccessKey: "guess" }, "GET", "/open/a"), "SignatureDoesNotMatch"],
      ["GET", presigned({ ...keys, sessionToken: "" }, "GET", "/open/a"), "ExpiredToken"],
      ["GET", presigned({ ...keys, accessKeyId: "OTHER" }, "GET", "/open/a"), "ExpiredToken"],
      ["GET", presigned(keys, "GET", "/open/../../etc/passwd"), "InvalidArgument"],
      ["GET", presigned(keys, "GET", "/open/none"), "NoSuchKey"],
      ["PATCH", presigned(keys, "PATCH", "/open/none"), "NotImplemented"],
      ["GET", "/open/a", "AccessDenied"],
      ["GET", "/open/%ff", "InvalidURI"],
      [
        "GET",
        presigned(keys, "GET", "/open/a b/ü", { query: { "response-content-type": "a\r\nb: c" } }),
        "InvalidArgument",
      ],
    ];
    for (const [method, path, code] of cases) {
      const answer = await send(method, path);
      assert.equal(codeIn(answer.body), code, `${method} ${path.slice(0, 60)}: ${answer.body}`);
    }
    const noLength = await send("PUT", presigned(keys, "PUT", "/open/c"), {
      headers: { "transfer-encoding": "chunked" },
    });
    assert.equal(codeIn(noLength.body), "MissingContentLength");
    const framed = {
      "x-amz-content-sha256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
      "x-amz-decoded-content-length": "4000000",
    };
    const broken = `no frame\r\n${"x".repeat(4_000_000)}`;
    const unread = await send("PUT", presigned(keys, "PUT", "/open/c", { signed: framed }), {
      headers: { ...framed, "content-length": String(broken.length) },
      body: broken,
    });
    assert.equal(codeIn(unread.body), "IncompleteBody", "the client sees why, though its body is not read");
    const preflight = await send("OPTIONS", "/open/a", {
      headers: { origin: "https://app.example", "access-control-request-method": "PUT" },
    });
    assert.deepEqual([preflight.status, preflight.headers["access-control-allow-origin"]], [200, "*"]);
  });

  test("the command line prints the environment of S3 clients", async () => {
    const env = { BERTH_URL: door.platform.url, BERTH_API_KEY: door.platform.apiKey };
    const { code, stdout, stderr } = await spawnBerth(["drive", "s3", "open", "--seconds", "120"], { env }).ended;
    assert.equal(code, 0, stderr);
    const given = Object.fromEntries(
      [...stdout.matchAll(/^export (\w+)='(.*)'$/gm)].map(([, name, value]) => [name, value]),
    );
    const {
      AWS_ACCESS_KEY_ID: accessKeyId,
      AWS_SECRET_ACCESS_KEY: secretAccessKey,
      AWS_SESSION_TOKEN: sessionToken,
    } = given;
    const keys = { accessKeyId, secretAccessKey, sessionToken, region: given.AWS_REGION, bucket: "open" };
    const made = { ...keys, endpoint: given.AWS_ENDPOINT_URL_S3, expiration: "2100-01-01T00:00:00Z" };
    await put(door.client(made), "open", "from the command line");
    assert.match(stderr, /The credentials end at 20/);
    assert.equal(given.AWS_DEFAULT_REGION, given.AWS_REGION);
  });

  test("a drive token is exchanged for credentials, and a session token for nothing", async () => {
    const { call } = door.platform;
    const keys = await door.keys("open");
    const exchange = async (token: string) => {
      const form = new URLSearchParams({
        ...{ Action: "AssumeRoleWithWebIdentity", Version: "2011-06-15", RoleSessionName: "test" },
        ...{ RoleArn: "arn:aws:iam::000000000000:role/drive", WebIdentityToken: token },
      });
      const headers = { "content-type": "application/x-www-form-urlencoded" };
      return sendRaw(keys.endpoint, "POST", "/", { headers, body: form.toString() });
    };
    const { body } = await call("POST", "/drives/open/access-token");
    const { status, body: xml } = await exchange(body.access_token);
    assert.equal(status, 200, xml);
    const member = (name: string): string => new RegExp(`<${name}>([^<]+)</${name}>`).exec(xml)?.[1] ?? "";
    const made: S3Keys = {
      ...keys,
      accessKeyId: member("AccessKeyId"),
      secretAccessKey: member("SecretAccessKey"),
      sessionToken: member("SessionToken"),
      expiration: member("Expiration"),
    };
    await put(door.client(made), "open", "exchanged");
    for (const token of [keys.sessionToken, made.sessionToken, "", "nonsense", door.platform.apiKey])
      assert.equal(codeIn((await exchange(token)).body), "InvalidIdentityToken");
  });
});
