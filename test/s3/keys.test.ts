/** Long-lived credentials of the S3 door: an API key of a service account, as S3 clients sign with it. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import * as s3 from "@aws-sdk/client-s3";
import { HOUR_MS } from "../../src/lib/time/clock.ts";
import { makeUser } from "../identities.ts";
import { startTestPlatform } from "../platform.ts";
import { openDoor, type S3Keys, type TestDoor } from "./bucket.ts";

describe("S3 keys of service accounts", () => {
  let door: TestDoor;
  let aheadMs = 0;
  const call: TestDoor["platform"]["call"] = (method, path, rest = {}) =>
    door.platform.call(method, path, { workspace: "main", ...rest });
  const fails = (work: Promise<unknown>, name: string) => assert.rejects(work, { name });
  const put = (client: s3.S3Client, Bucket: string, Key = "a") =>
    client.send(new s3.PutObjectCommand({ Bucket, Key, Body: "x" }));

  let accounts = 0;
  const account = async (role: "admin" | "member"): Promise<string> => {
    accounts += 1;
    return (await call("POST", "/service_accounts", { body: { name: `robot-${accounts}`, role } })).body.client_id;
  };
  const keyOf = async (clientId: string, body: object = {}) => {
    const made = await call<{ id: string; apiKey: string; s3: Partial<S3Keys> }>(
      "POST",
      `/service_accounts/${clientId}/api_keys`,
      { body: { s3: true, ...body } },
    );
    assert.equal(made.status, 200, JSON.stringify(made.body));
    return made.body;
  };
  const clientOf = ({ s3: { accessKeyId = "", secretAccessKey = "", endpoint, region } }: { s3: Partial<S3Keys> }) =>
    door.client(
      { accessKeyId, secretAccessKey, sessionToken: "", expiration: "", bucket: "", ...{ endpoint, region } } as S3Keys,
      { credentials: { accessKeyId, secretAccessKey } },
    );
  const bucketsOf = async (client: s3.S3Client) =>
    (await client.send(new s3.ListBucketsCommand({}))).Buckets?.map(({ Name }) => Name).sort();

  before(async () => {
    door = await openDoor({ clock: { now: () => Date.now() + aheadMs } });
    await door.drive("open");
    await door.drive("readable", { permissions: [{ mode: "read" }] });
    await door.drive("closed", { permissions: [{ labels: { team: "x" } }] });
  });
  after(() => door[Symbol.asyncDispose]());

  test("a key opens the drives that its account may use, as their permissions say", async () => {
    const member = clientOf(await keyOf(await account("member")));
    assert.deepEqual(await bucketsOf(member), ["open", "readable"]);
    await put(member, "open");
    await fails(put(member, "readable"), "AccessDenied");
    await fails(put(member, "closed"), "NoSuchBucket");
    await fails(put(member, "none"), "NoSuchBucket");
    const admin = clientOf(await keyOf(await account("admin")));
    assert.deepEqual(await bucketsOf(admin), ["closed", "open", "readable"]);
    await put(admin, "closed");
  });

  test("a list of buckets goes on where a page ended, and takes no other token", async () => {
    const admin = clientOf(await keyOf(await account("admin")));
    const names: (string | undefined)[] = [];
    for await (const { Buckets = [] } of s3.paginateListBuckets({ client: admin, pageSize: 1 }, {}))
      names.push(...Buckets.map(({ Name }) => Name));
    assert.deepEqual(names.sort(), ["closed", "open", "readable"]);
    const list = (input: s3.ListBucketsCommandInput) => admin.send(new s3.ListBucketsCommand(input));
    assert.deepEqual(
      (await list({ Prefix: "op" })).Buckets?.map(({ Name }) => Name),
      ["open"],
    );
    for (const input of [{ ContinuationToken: "bm9uZQ" }, { MaxBuckets: 0 }])
      await fails(list(input), "InvalidArgument");
  });

  test("the scopes of the key hold at the door", async () => {
    const clientId = await account("admin");
    const reader = clientOf(await keyOf(clientId, { scopes: ["drives:get"] }));
    await bucketsOf(reader);
    await fails(put(reader, "open"), "AccessDenied");
    await fails(bucketsOf(clientOf(await keyOf(clientId, { scopes: ["sandboxes:get"] }))), "InvalidAccessKeyId");
  });

  test("the credentials end with the key, its time, and its account", async () => {
    const clientId = await account("member");
    const [first, second] = [await keyOf(clientId), await keyOf(clientId)];
    await put(clientOf(first), "open");
    await call("DELETE", `/service_accounts/${clientId}/api_keys/${first.id}`);
    await fails(put(clientOf(first), "open"), "InvalidAccessKeyId");
    await put(clientOf(second), "open");
    await call("DELETE", `/service_accounts/${clientId}`);
    await fails(put(clientOf(second), "open"), "InvalidAccessKeyId");
    const brief = clientOf(await keyOf(await account("member"), { expires_in: "1h" }));
    await put(brief, "open");
    aheadMs = HOUR_MS + 1000;
    await fails(put(brief, "open"), "InvalidAccessKeyId").finally(() => {
      aheadMs = 0;
    });
  });

  test("a person's API key and another's secret sign nothing, and a drive of another workspace stays closed", async () => {
    const { key } = await makeUser(door.platform.app.store, null, "member", { main: "admin" });
    const owned = await door.platform.app.store.keys.findKey(key);
    const [one, other] = [await keyOf(await account("admin")), await keyOf(await account("admin"))];
    const named = (id: string): string => `BERTH${id.replaceAll("-", "").toUpperCase()}`;
    assert.equal(one.s3.accessKeyId, named(one.id));
    const personal = clientOf({ s3: { ...one.s3, accessKeyId: named(owned?.id ?? "") } });
    await fails(put(personal, "open"), "InvalidAccessKeyId");
    const mixed = clientOf({ s3: { ...one.s3, secretAccessKey: other.s3.secretAccessKey ?? "" } });
    await fails(put(mixed, "open"), "SignatureDoesNotMatch");
    await call("POST", "/workspaces", { body: { name: "apart" } });
    await door.platform.call("POST", "/drives", {
      workspace: "apart",
      body: { metadata: { name: "theirs" }, spec: {} },
    });
    await fails(put(clientOf(one), "theirs"), "NoSuchBucket");
  });

  test("the secret is in one answer only, and a change of an object names the account in the audit log", async () => {
    const clientId = await account("member");
    const plain = await call("POST", `/service_accounts/${clientId}/api_keys`, { body: {} });
    assert.equal(plain.body.s3, undefined);
    const made = await keyOf(clientId);
    const { body: listed } = await call("GET", `/service_accounts/${clientId}/api_keys`);
    assert.ok(!JSON.stringify(listed).includes(made.s3.secretAccessKey ?? "?"));
    await put(clientOf(made), "open", "told");
    const { body } = await call("GET", "/audit?action=s3PutObject");
    assert.match(JSON.stringify(body), new RegExp(`${clientId}.*open/told|open/told.*${clientId}`));
    assert.ok(JSON.stringify(body).includes(made.id), "and the key");
  });
});

test("a server without an S3 door makes no key for one", async () => {
  const platform = await startTestPlatform({});
  try {
    const { body } = await platform.call("POST", "/service_accounts", { body: { name: "robot" } });
    const path = `/service_accounts/${body.client_id}/api_keys`;
    const { status, body: refusal } = await platform.call("POST", path, { body: { s3: true } });
    assert.deepEqual([status, /BERTH_S3_PORT/.test(refusal.message)], [422, true]);
    assert.deepEqual((await platform.call("GET", path)).body, []);
  } finally {
    await platform.stop();
  }
});
