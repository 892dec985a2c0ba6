/** Drives inside running sandboxes: decided by the platform, mounted by this machine's own driver. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { GetObjectCommand, ListObjectsV2Command, PutObjectCommand, S3Client } from "@aws-sdk/client-s3";
import type { S3Keys } from "../../s3/bucket.ts";
import { machineSkip, sandboxSuite } from "../../sandbox-suite.ts";

describe("drives in sandboxes on this machine", { skip: machineSkip }, () => {
  const suite = sandboxSuite();
  const { inside, exec, create } = suite;
  const mount = (name: string, body: object) => inside(name, "POST", "/drives/mount", body);
  const makeDrive = (name: string, spec: object = {}) =>
    suite.platform().call("POST", "/drives", { body: { metadata: { name }, spec } });
  before(async () => {
    await suite.start({ standby_after: "60", s3_port: "0" });
    await create("one", {}, { labels: { team: "red" } });
    await create("two");
    await makeDrive("shared");
  });
  after(() => suite.stop());

  test("two sandboxes share one drive, one of them only reads", async () => {
    const made = await mount("one", { driveName: "shared", mountPath: "mnt/shared" });
    assert.deepEqual(made, {
      status: 200,
      body: {
        success: true,
        message: "Drive mounted successfully",
        driveName: "shared",
        mountPath: "/mnt/shared",
        drivePath: "/",
        readOnly: false,
        uidMap: "",
        gidMap: "",
      },
    });
    await exec("one", "mkdir /mnt/shared/sub && echo hi > /mnt/shared/sub/note");
    const reader = { driveName: "shared", mountPath: "/in", drivePath: "/sub", readOnly: true };
    assert.equal((await mount("two", reader)).status, 200);
    assert.equal((await exec("two", "cat /in/note")).body.stdout, "hi\n");
    assert.notEqual((await exec("two", "echo no > /in/other")).body.exitCode, 0);
    assert.equal((await mount("two", reader)).status, 200, "the same again is no error");
    const busy = await mount("two", { driveName: "shared", mountPath: "/in" });
    assert.equal(busy.status, 409);
    assert.deepEqual((await inside("two", "GET", "/drives/mount")).body.mounts, [
      { driveName: "shared", mountPath: "/in", drivePath: "/sub", readOnly: true, uidMap: "", gidMap: "" },
    ]);
  });

  test("a sandbox and S3 see each other's files, and no link of the sandbox leads S3 out of the drive", async () => {
    const { call } = suite.platform();
    await makeDrive("neighbour");
    const { body: neighbour } = await call("GET", "/drives/neighbour");
    const { body: keys } = await call<S3Keys>("POST", "/drives/shared/s3-credentials");
    const credentials = { ...keys, expiration: new Date(keys.expiration) };
    const client = new S3Client({ endpoint: keys.endpoint, region: keys.region, credentials, maxAttempts: 1 });
    const read = async (Key: string) =>
      (await client.send(new GetObjectCommand({ Bucket: "shared", Key }))).Body?.transformToString();
    try {
      assert.equal(await read("sub/note"), "hi\n");
      await client.send(new PutObjectCommand({ Bucket: "shared", Key: "sub/by-s3/new", Body: "from outside" }));
      assert.equal((await exec("two", "cat /in/by-s3/new")).body.stdout, "from outside");
      assert.equal((await exec("one", "echo more >> /mnt/shared/sub/by-s3/new; echo $?")).body.stdout, "0\n");
      assert.equal(await read("sub/by-s3/new"), "from outsidemore\n");
      const links = ["ln -s /etc/passwd file", "ln -s /etc folder", `ln -s ../${neighbour.metadata.uid} drive`];
      await exec(
        "one",
        ["mkdir /mnt/shared/trap", "cd /mnt/shared/trap", ...links, "ln -s /dev/zero endless", "mkfifo pipe"].join(
          " && ",
        ),
      );
      for (const Key of ["trap/file", "trap/folder/passwd", "trap/endless", "trap/pipe"])
        await assert.rejects(read(Key), { name: "NoSuchKey" }, Key);
      const into = new PutObjectCommand({ Bucket: "shared", Key: "trap/drive/planted", Body: "x" });
      await assert.rejects(client.send(into), { name: "InvalidRequest" });
      const { KeyCount } = await client.send(new ListObjectsV2Command({ Bucket: "shared", Prefix: "trap/" }));
      assert.equal(KeyCount, 0);
    } finally {
      client.destroy();
    }
  });

  test("a drive that is mounted cannot be deleted, and its sandbox can be changed", async () => {
    const { call } = suite.platform();
    const refused = await call("DELETE", "/drives/shared");
    assert.equal(refused.status, 409);
    assert.match(refused.body.message, /sandbox 'one'/);
    const { body } = await call("GET", "/sandboxes/one");
    const put = await call("PUT", "/sandboxes/one", { body: { ...body, metadata: { name: "one", displayName: "x" } } });
    assert.equal(put.status, 200);
    assert.equal((await call("DELETE", "/drives/shared")).status, 409);
  });

  test("mounts come back after a new deployment", async () => {
    const { call } = suite.platform();
    const { body } = await call("GET", "/sandboxes/two");
    Object.assign(body.spec.runtime, { envs: [{ name: "NEW", value: "yes" }] });
    assert.equal((await call("PUT", "/sandboxes/two", { body })).status, 200);
    await suite.reaches("two", ({ status }) => status === "DEPLOYED");
    assert.equal((await exec("two", "echo $NEW; cat /in/note")).body.stdout, "yes\nhi\n");
  });

  test("an unmounted drive is gone inside and may be deleted", async () => {
    assert.deepEqual((await inside("two", "DELETE", "/drives/mount/in")).body, {
      success: true,
      message: "Drive unmounted successfully",
      mountPath: "/in",
    });
    assert.notEqual((await exec("two", "cat /in/note")).body.exitCode, 0);
    assert.equal((await inside("two", "DELETE", "/drives/mount/in")).status, 404);
    assert.equal((await inside("one", "DELETE", "/drives/mount/mnt%2Fshared")).status, 200);
    assert.deepEqual((await inside("one", "GET", "/drives/mount")).body, { mounts: [] });
    assert.equal((await suite.platform().call("DELETE", "/drives/shared")).status, 200);
  });

  test("rules are read by label: the first match decides", async () => {
    await makeDrive("guarded", {
      permissions: [{ labels: { team: "red" }, mode: "read", path: "/public" }, { labels: { "service-name": "two" } }],
    });
    assert.equal((await mount("two", { driveName: "guarded", mountPath: "/g" })).status, 200);
    await exec("two", "mkdir /g/public");
    const all = await mount("one", { driveName: "guarded", mountPath: "/g" });
    assert.equal(all.status, 500);
    assert.match(all.body.error, /access denied/);
    const part = await mount("one", { driveName: "guarded", mountPath: "/g", drivePath: "/public" });
    assert.deepEqual([part.status, part.body.readOnly], [200, true]);
    await makeDrive("closed", { permissions: [{ labels: { team: "blue" } }] });
    assert.match((await mount("one", { driveName: "closed", mountPath: "/c" })).body.error, /access denied/);
    assert.match((await makeDrive("far", { region: "elsewhere" })).body.message, /no region 'elsewhere'/);
  });

  test("what is wrong is refused before anything is tried", async () => {
    const good = { driveName: "guarded", mountPath: "/x" };
    const cases: [object | string, number][] = [
      ["nonsense", 400],
      [{}, 400],
      [{ ...good, driveName: "a b" }, 400],
      [{ ...good, driveName: "d".repeat(129) }, 400],
      [{ ...good, mountPath: "/a/../b" }, 400],
      [{ ...good, mountPath: `/${"m".repeat(512)}` }, 400],
      [{ ...good, drivePath: "relative" }, 400],
      [{ ...good, drivePath: "/../.." }, 400],
      [{ ...good, uidMap: "0:1000" }, 400],
      [{ ...good, mountPath: "/proc" }, 500],
      [{ ...good, mountPath: "/" }, 500],
      [{ ...good, driveName: "missing" }, 500],
    ];
    for (const [body, status] of cases) {
      const answer = await mount("two", body as object);
      assert.equal(answer.status, status, `${JSON.stringify(body)} → ${JSON.stringify(answer.body)}`);
      assert.equal(typeof answer.body.error, "string");
    }
    assert.equal((await inside("two", "GET", "/drives/mount")).body.mounts.length, 1);
    assert.equal((await suite.platform().call("GET", "/sandboxes/two")).body.status, "DEPLOYED");
  });
});
