/** Snapshots and forks of sandboxes on this machine's own driver. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { machineSkip, sandboxSuite } from "../../sandbox-suite.ts";

describe("snapshots and forks on this machine", { skip: machineSkip }, () => {
  const suite = sandboxSuite();
  const { exec, create } = suite;
  const call = (method: string, path: string, body?: object) =>
    suite.platform().call(method, path, body === undefined ? {} : { body });
  before(async () => {
    await suite.start({ standby_after: "60" });
    await create("base", {
      runtime: { memory: 512, ttl: "24h", envs: [{ name: "KEY", value: "hush", secret: true }] },
    });
    await exec("base", "echo first > /root/note");
  });
  after(() => suite.stop());
  let snapshotId = "";

  test("a snapshot keeps the files of its moment", async () => {
    const made = await call("POST", "/sandboxes/base/snapshots", { name: "early" });
    assert.equal(made.status, 200, JSON.stringify(made.body));
    snapshotId = made.body.id;
    const { createdAt, createdBy, id, ...rest } = made.body;
    assert.match(id, /^snap_/);
    assert.ok(Date.parse(createdAt) > 0 && createdBy.length > 0);
    assert.deepEqual(rest, { name: "early", status: "ready", sandboxName: "base", workspace: "main" });
    await exec("base", "echo second > /root/note");
    const fork = await call("POST", "/sandboxes/base/fork", { targetName: "old", targetType: "sandbox", snapshotId });
    assert.deepEqual(fork.body, { name: "old", type: "sandbox", snapshotId });
    assert.equal((await exec("old", "cat /root/note; echo $KEY")).body.stdout, "first\nhush\n");
    const { body } = await call("GET", "/sandboxes/old");
    assert.equal(body.spec.runtime.ttl, undefined);
    assert.deepEqual(
      (await call("GET", "/sandboxes/base/snapshots")).body.map((each: { id: string }) => each.id),
      [snapshotId],
    );
  });

  test("a sandbox is brought back to its snapshot, and to no other", async () => {
    await create("back", { runtime: { memory: 512 } });
    await exec("back", "echo first > /root/note");
    const { body: taken } = await call("POST", "/sandboxes/back/snapshots", {});
    await exec("back", "echo second > /root/note; echo new > /root/new");
    const path = `/sandboxes/back/snapshots/${taken.id}/restore`;
    const restored = await call("POST", path);
    assert.deepEqual([restored.status, restored.body], [200, { name: "back", snapshotId: taken.id }]);
    assert.equal((await exec("back", "cat /root/note; ls /root/new 2>/dev/null; true")).body.stdout, "first\n");
    const { body } = await call("GET", "/sandboxes/back");
    assert.deepEqual([body.status, body.forkedFrom], ["DEPLOYED", undefined]);
    assert.equal((await call("POST", path, { withMemory: true })).status, 422);
    assert.equal((await call("POST", `/sandboxes/back/snapshots/${snapshotId}/restore`, {})).status, 404);
    await call("DELETE", "/sandboxes/back");
  });

  test("a fork has the files as they are now, and goes its own way", async () => {
    const fork = await call("POST", "/sandboxes/base/fork", { target_name: "now", type: "sandbox" });
    assert.equal(fork.status, 200, JSON.stringify(fork.body));
    assert.equal((await exec("now", "cat /root/note")).body.stdout, "second\n");
    await exec("now", "echo third > /root/note");
    assert.equal((await exec("base", "cat /root/note")).body.stdout, "second\n");
    const kept = async () =>
      (await call("GET", "/sandboxes/base/snapshots")).body.map(({ id }: { id: string }) => id) as string[];
    assert.ok((await kept()).includes(fork.body.snapshotId), "what was forked is a snapshot like any other");
    const before = await kept();
    assert.equal((await call("POST", "/sandboxes/base/fork", { targetName: "now" })).status, 409);
    assert.deepEqual(await kept(), before, "a fork that is refused takes nothing");
  });

  test("what cannot be forked is refused", async () => {
    const cases: [string, object, number][] = [
      ["base", {}, 400],
      ["base", { targetName: "Not A Name" }, 400],
      ["base", { targetName: "x", snapshotId: "snap_none" }, 404],
      ["base", { targetName: "x", targetType: "application" }, 422],
      ["base", { targetName: "x", targetType: "application", prefix: "www" }, 400],
      ["nowhere", { targetName: "x" }, 404],
    ];
    for (const [name, body, status] of cases)
      assert.equal((await call("POST", `/sandboxes/${name}/fork`, body)).status, status, JSON.stringify(body));
    assert.equal((await call("GET", "/sandboxes/x")).status, 404);
  });

  test("files that cannot be copied are told at once, and go with their sandbox", async () => {
    await create("abyss", { runtime: { memory: 512 } });
    const name = "d".repeat(100);
    // Deeper than any path can say, so it is made from the bottom up.
    const deep = `cd /root; mkdir tree; for i in $(seq 60); do mkdir next; mv tree next/${name}; mv next tree; done`;
    assert.equal((await exec("abyss", deep)).body.exitCode, 0);
    const fork = await call("POST", "/sandboxes/abyss/fork", { targetName: "copy-of-abyss" });
    assert.deepEqual([fork.status, /could not be copied: File name too long/.test(fork.body.message)], [422, true]);
    assert.equal((await call("POST", "/sandboxes/abyss/snapshots", {})).body.status, "failed");
    assert.equal((await call("DELETE", "/sandboxes/abyss")).status, 200);
    await create("abyss", { runtime: { memory: 512 } }); // the name is free when the files are gone
  });

  test("a sandbox becomes an application: its files, and the program that listens", async () => {
    await create("web", { runtime: { memory: 256, ports: [{ target: 3000 }], envs: [{ name: "WHO", value: "all" }] } });
    const page =
      "require('http').createServer((q, s) => s.end(require('fs').readFileSync('page') + process.env.WHO + process.env.MORE)).listen(3000)";
    await suite.inside("web", "PUT", "/filesystem/%2Fsrv%2Fserver.js", { content: page });
    await exec("web", "echo one > /srv/page");
    const server = { command: "exec node server.js", workingDir: "/srv", env: { MORE: "!" }, waitForPorts: [3000] };
    await suite.inside("web", "POST", "/process", { ...server, name: "server", timeout: 60 });
    const read = async () => (await fetch(`${suite.platform().url}/main/applications/site/`)).text();
    const fork = (more: object = {}) =>
      call("POST", "/sandboxes/web/fork", { targetName: "site", targetType: "application", ...more });

    const made = await fork();
    assert.equal(made.status, 200, JSON.stringify(made.body));
    assert.deepEqual([made.body.name, made.body.type], ["site", "application"]);
    assert.equal(await read(), "one\nall!");
    const { spec } = (await call("GET", "/applications/site")).body;
    assert.deepEqual(
      [spec.port, spec.memory, spec.command, spec.workingDir],
      [3000, 256, ["node", "server.js"], "/srv"],
    );

    await exec("web", "echo two > /srv/page");
    assert.equal(await read(), "one\nall!");
    assert.equal((await fork({ traffic: 30 })).status, 200);
    assert.deepEqual((await call("GET", "/applications/site")).body.spec.revision, {
      active: "1",
      canary: "2",
      canaryPercent: 30,
    });
    assert.equal((await fork()).status, 200);
    assert.equal(await read(), "two\nall!");

    const stolen = { image: "base-image", snapshot: "snap_ofsomebodyelse" };
    assert.equal((await call("POST", "/applications", { metadata: { name: "thief" }, spec: stolen })).status, 400);
    await call("DELETE", "/sandboxes/web");
    assert.equal(await read(), "two\nall!");
    assert.equal((await call("DELETE", "/applications/site")).status, 200);
  });

  test("a fork outlives the snapshot and the sandbox it came from", async () => {
    const gone = await call("DELETE", `/sandboxes/base/snapshots/${snapshotId}`);
    assert.deepEqual([gone.status, gone.body], [204, null]);
    assert.equal((await call("DELETE", `/sandboxes/base/snapshots/${snapshotId}`)).status, 404);
    await call("DELETE", "/sandboxes/base");
    const { body } = await call("GET", "/sandboxes/old");
    Object.assign(body.spec.runtime, { envs: [{ name: "NEW", value: "yes" }] });
    assert.equal((await call("PUT", "/sandboxes/old", body)).status, 200);
    await suite.reaches("old", ({ status }) => status === "DEPLOYED");
    assert.equal((await exec("old", "cat /root/note; echo $NEW")).body.stdout, "first\nyes\n");
  });
});
