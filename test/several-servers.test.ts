/** Several servers on one PostgreSQL: what one writes the other reads at once, and what one revokes the other refuses. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { after, before, describe, test } from "node:test";
import { Agent, request } from "undici";
import { signIn } from "../src/auth/sign-in.ts";
import { adoptUnowned } from "../src/kinds/node/adopt.ts";
import type { Deps } from "../src/kinds/port.ts";
import { watchChanges } from "../src/kinds/watch/operations.ts";
import { openBlobStore } from "../src/node/blobs/blob-store.ts";
import { testDatabases } from "./databases.ts";
import { openEvents } from "./events.ts";
import { FakeMachine, fakeDriver } from "./fake-driver.ts";
import { startTestPlatform, type TestPlatform } from "./platform.ts";
import type { S3Keys } from "./s3/bucket.ts";
import { presigned, sendRaw } from "./s3/signed-request.ts";
import { until } from "./triggers/agent-world.ts";

/** The default of the setting. */
const ANONYMOUS_WRITES = 300;

const databases = await testDatabases();
after(() => databases.stop());
const postgres = databases.all.find(({ name }) => name === "postgres") ?? assert.fail();

describe("two servers on one database", { skip: postgres.skip }, () => {
  const platforms: TestPlatform[] = [];
  before(async () => {
    const { databaseUrl } = await postgres.migrated();
    const config = {
      secret_key: "one key for all servers of one database",
      domain: "berth.test",
      public_url: "http://berth.test",
    };
    platforms.push(
      ...(await Promise.all([startTestPlatform({ databaseUrl, config }), startTestPlatform({ databaseUrl, config })])),
    );
  });
  after(async () => {
    for (const platform of platforms) await platform.stop();
  });
  const [one, two] = [() => platforms[0] ?? assert.fail(), () => platforms[1] ?? assert.fail()];

  test("a start on an empty database happens once", async () => {
    assert.equal((await one().call("GET", "/workspaces")).body.length, 1);
    assert.equal((await two().call("GET", "/accounts")).body.length, 1);
  });

  test("a name is taken once for both", async () => {
    const body = { metadata: { name: "shared" }, spec: {} };
    const answers = await Promise.all(
      [one(), two(), one(), two()].map((platform) => platform.call("POST", "/drives", { body })),
    );
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 409, 409, 409]);
    const uid = answers.find(({ status }) => status === 200)?.body.metadata.uid;
    for (const platform of platforms)
      assert.equal((await platform.call("GET", "/drives/shared")).body.metadata.uid, uid);
  });

  test("two sandboxes whose host names would meet have two, made through both servers at the same moment", async () => {
    assert.equal((await one().call("POST", "/workspaces", { body: { name: "evil-main" } })).status, 200);
    const make = (platform: TestPlatform, workspace: string, name: string) =>
      platform.call("POST", "/sandboxes", { workspace, body: { metadata: { name }, spec: {} } });
    for (let round = 0; round < 5; round += 1) {
      const made = await Promise.all([
        make(one(), "main", `api${round}-evil`),
        make(two(), "evil-main", `api${round}`),
      ]);
      const hosts = made.map(({ body }) => new URL(body.metadata.url).hostname);
      assert.equal(new Set(hosts).size, 2, hosts.join(" "));
      assert.ok(
        hosts.some((host) => host.startsWith(`sbx-api${round}-evil-main.`)),
        "the earlier one has the plain name",
      );
    }
  });

  test("a watcher at one server hears of what the other does, and ends when the other revokes its key", async () => {
    const { body: key } = await two().call("POST", "/api_keys", { body: { name: "watcher" } });
    await using watcher = openEvents(one().url, watchChanges, { key: key.apiKey, query: { kinds: "vpc" } });
    await watcher.until("ready");
    await two().call("POST", "/vpcs", { body: { metadata: { name: "far" }, spec: {} } });
    assert.equal(((await watcher.until("change")).data as { name: string }).name, "far");
    assert.equal((await two().call("DELETE", `/api_keys/${key.id}`)).status, 200);
    await watcher.until("end");
  });

  test("wrong passwords and wrong credentials at both servers count together", async () => {
    const wrong = { password: "wrong", address: "192.0.2.7", knownBrowser: () => null };
    const tryAt = async (platform: TestPlatform): Promise<string> =>
      (await signIn(platform.app.store, { email: "nobody@berth.test", ...wrong })).outcome;
    const outcomes = [];
    for (let n = 0; n < 6; n += 1) outcomes.push(await tryAt(one()), await tryAt(two()));
    assert.deepEqual(
      outcomes.map((outcome) => outcome === "refused"),
      Array.from({ length: 12 }, (_, n) => n < 10),
    );
    const elsewhere = new Agent({ localAddress: "127.0.0.77" });
    const authorization = `Basic ${Buffer.from("any:wrong").toString("base64")}`;
    const ask = async (platform: TestPlatform): Promise<number> => {
      const { statusCode, body } = await request(`${platform.url}/v2/`, {
        dispatcher: elsewhere,
        headers: { authorization },
      });
      await body.dump();
      return statusCode;
    };
    try {
      const refusalsAt = async (platform: TestPlatform): Promise<number> => {
        for (let asked = 0; ; asked += 1) if ((await ask(platform)) === 429) return asked;
      };
      const [first, second] = [await refusalsAt(one()), await refusalsAt(two())];
      // A server of its own would take as many as the first one did.
      assert.ok(first >= ANONYMOUS_WRITES && second < ANONYMOUS_WRITES, `${first} ${second}`);
    } finally {
      await elsewhere.destroy();
    }
  });

  test("an idempotent request sent to both has one effect", async () => {
    const headers = { "idempotency-key": "both" };
    const body = { metadata: { name: "once" }, spec: {} };
    const answers = await Promise.all(
      [one(), two(), one(), two()].map((platform) => platform.call("POST", "/drives", { body, headers })),
    );
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 200, 200, 200],
    );
    assert.equal(new Set(answers.map((answer) => answer.body.metadata.uid)).size, 1);
  });

  test("a cursor of one is good at the other", async () => {
    const page = await one().call("GET", "/drives?limit=1&sort=name:asc");
    const next = await two().call("GET", `/drives?limit=1&sort=name:asc&cursor=${page.body.meta.nextCursor}`);
    assert.deepEqual([page.body.data[0].metadata.name, next.body.data[0].metadata.name], ["once", "shared"]);
  });

  test("the S3 door of one server hands requests about a drive of the other to it", async () => {
    const host = "s3.berth.test";
    const body = { metadata: { name: "bucket" }, spec: {} };
    assert.equal((await one().call("POST", "/drives", { body })).status, 200);
    assert.equal((await two().call("GET", "/drives/bucket")).body.state.s3Url, `http://${host}/bucket`);
    const { body: keys } = await two().call<S3Keys>("POST", "/drives/bucket/s3-credentials");
    const send = (to: TestPlatform, method: string, key: string, content = "", headers = {}) => {
      const path = presigned(keys, method, `/bucket/${key}`);
      return sendRaw(to.url, method, path, { headers: { host, ...headers }, body: content });
    };
    const large = "0123456789abcdef".repeat(200_000);
    const length = { "content-length": String(large.length) };
    const put = await send(two(), "PUT", "far", large, { ...length, expect: "100-continue" });
    assert.equal(put.status, 200, put.body);
    for (const server of platforms) {
      const got = await send(server, "GET", "far");
      assert.ok(got.status === 200 && got.body === large, `${got.status} ${got.body.slice(0, 300)}`);
    }
    const refused = await send(two(), "GET", "none");
    assert.match(refused.body, /NoSuchKey/);
  });

  test("a revoked key stops at both", async () => {
    const { body: key } = await one().call("POST", "/api_keys", { body: { name: "short-lived" } });
    assert.equal((await two().call("GET", "/drives", { key: key.apiKey })).status, 200);
    assert.equal((await one().call("DELETE", `/api_keys/${key.id}`)).status < 300, true);
    assert.equal((await one().call("GET", "/drives", { key: key.apiKey })).status, 401);
    // The news travels by the database; the other server hears of it a moment later.
    await until(
      "the other server lets it in no more",
      async () => (await two().call("GET", "/drives", { key: key.apiKey })).status === 401,
    );
  });
});

/** One machine that both servers see, as two processes of one node would. */
describe("schedules on two servers", { skip: postgres.skip }, () => {
  const SCHEDULES = 12;
  const platforms: TestPlatform[] = [];
  const submitted: string[] = [];
  const machine = new FakeMachine({
    images: ["service/base-image:latest"],
    api: () => (request, response) => {
      let text = "";
      request.on("data", (chunk: Buffer) => (text += chunk.toString()));
      request.on("end", () => {
        const { name } = JSON.parse(text) as { name: string };
        submitted.push(name);
        response.setHeader("content-type", "application/json").end(JSON.stringify({ name }));
      });
    },
  });
  before(async () => {
    const { databaseUrl } = await postgres.migrated();
    const config = { secret_key: "one key for all servers of one database" };
    const start = () => startTestPlatform({ databaseUrl, config, driver: fakeDriver(machine) });
    platforms.push(...(await Promise.all([start(), start()])));
  });
  after(async () => {
    for (const platform of platforms) await platform.stop();
    await machine.dispose();
  });

  test("every time is fired once, by the node of the sandbox", async (t) => {
    const [one = assert.fail(), two = assert.fail()] = platforms;
    const written = platforms.map(({ app }) => t.mock.method(app.store.resources, "insert").mock);
    await one.call("POST", "/sandboxes", { body: { metadata: { name: "box" }, spec: {} } });
    const names = Array.from({ length: SCHEDULES }, (_, n) => `job-${n}`);
    const made = await Promise.all(
      names.map((name, n) => {
        const body = { type: "sleep", value: "2s", input: { command: "true", name } };
        return (n % 2 ? one : two).call("POST", "/sandboxes/box/schedules", { body });
      }),
    );
    assert.deepEqual(new Set(made.map(({ status }) => status)), new Set([200]));
    const executions = async (platform: TestPlatform) =>
      (await platform.call("GET", "/sandboxes/box/schedule-executions?limit=100")).body.data;
    await until("all are fired", async () => (await executions(two)).length >= SCHEDULES);
    const recorded = await executions(one);
    const refused = recorded.filter(({ statusCode }) => statusCode !== 200);
    assert.deepEqual(refused, [], "each was taken by the machine");
    assert.deepEqual(submitted.toSorted(), names.toSorted());
    assert.deepEqual(recorded.map(({ processName }) => processName).sort(), names.toSorted());
    const fired = written.map(({ calls }) => calls.filter((each) => each.arguments[1].kind === "scheduleexecution"));
    assert.deepEqual(
      fired.map(({ length }) => length),
      [SCHEDULES, 0],
    );
  });
});

/** Two servers with a machine each: a workload belongs to the node that made it, and no other node touches it. */
describe("two servers with a machine each", { skip: postgres.skip }, () => {
  const images = ["service/base-image:latest"];
  const machines = { one: new FakeMachine({ images }), two: new FakeMachine({ images }) };
  let one: TestPlatform;
  let two: TestPlatform;
  let start: (machine: FakeMachine, dataDir?: string) => Promise<TestPlatform>;
  before(async () => {
    const { databaseUrl } = await postgres.migrated();
    const config = {
      secret_key: "one key for all servers of one database",
      node_lost_after: "60",
      node_full_at: "100",
    };
    start = (machine, dataDir) =>
      startTestPlatform({ databaseUrl, config, driver: fakeDriver(machine), ...(dataDir ? { dataDir } : {}) });
    one = await start(machines.one);
  });
  after(async () => {
    await two?.stop();
    await one?.stop();
    for (const machine of Object.values(machines)) await machine.dispose();
  });

  test("a sandbox keeps its machine and its files when another server starts", async () => {
    const { body: box } = await one.call("POST", "/sandboxes", { body: { metadata: { name: "kept" }, spec: {} } });
    const { uid } = box.metadata;
    writeFileSync(join(machines.one.rootOf(uid), "work"), "a day of it");
    two = await start(machines.two);
    // The second server has looked at every record of the start when its own sandbox runs.
    const { body: other } = await two.call("POST", "/sandboxes", { body: { metadata: { name: "other" }, spec: {} } });
    assert.equal(other.status, "DEPLOYED");
    const labels = { seen: "by the second server" };
    const update = { metadata: { name: "kept", labels }, spec: box.spec };
    assert.equal((await two.call("PUT", "/sandboxes/kept", { body: update })).status, 200);
    const { body: third } = await two.call("POST", "/sandboxes", { body: { metadata: { name: "third" }, spec: {} } });
    assert.deepEqual([...machines.two.workloads.keys()].sort(), [other.metadata.uid, third.metadata.uid].sort());
    assert.equal(readFileSync(join(machines.one.rootOf(uid), "work"), "utf8"), "a day of it");
    const record = await two.app.store.resources.getAcrossWorkspaces(uid);
    const { instances } = (record ?? assert.fail()).state as { instances: { endpoint: { dir: string } }[] };
    assert.equal(instances[0]?.endpoint.dir.startsWith(machines.one.dir), true, "the record names the first machine");
  });

  test("a sandbox goes to the node of its volume, whichever server is asked", async () => {
    for (const [platform, name] of [
      [one, "first"],
      [two, "second"],
    ] as const)
      assert.equal((await platform.call("POST", "/volumes", { body: { metadata: { name }, spec: {} } })).status, 200);
    const spec = (...names: string[]) => ({ volumes: names.map((name) => ({ name, mountPath: `/${name}` })) });
    const { body: near } = await two.call("POST", "/sandboxes", {
      body: { metadata: { name: "near" }, spec: spec("first") },
    });
    assert.equal(near.status, "DEPLOYED");
    assert.equal(machines.one.workloads.has(near.metadata.uid), true);
    const torn = await one.call("POST", "/sandboxes", {
      body: { metadata: { name: "torn" }, spec: spec("first", "second") },
    });
    assert.equal(torn.status, 409);
    assert.match(torn.body.message, /volume '(first|second)' is on node .* and volume '(first|second)' is on node/);
  });

  test("admins see the nodes, and a drained node gets nothing new", async () => {
    const { body: nodes } = await one.call("GET", "/nodes");
    assert.deepEqual(
      nodes.map(({ status, drained }: { status: string; drained: boolean }) => [status, drained]),
      [
        ["live", false],
        ["live", false],
      ],
    );
    const self = (await two.call("GET", "/nodes")).body.find(({ isSelf }) => isSelf);
    assert.equal(self.resources.sandbox >= 2, true);
    assert.equal((await one.call("DELETE", `/nodes/${self.id}`)).status, 409);
    assert.equal((await one.call("POST", `/nodes/${self.id}/drain`)).body.drained, true);
    const { body: moved } = await until("the other server knows", async () => {
      const made = await two.call("POST", "/sandboxes", { body: { metadata: {}, spec: {} } });
      return machines.one.workloads.has(made.body.metadata.uid) && made;
    });
    assert.equal(moved.status, "DEPLOYED");
    assert.equal((await two.call("POST", `/nodes/${self.id}/undrain`)).body.drained, false);
    const { body: own } = await two.call("POST", "/sandboxes", { body: { metadata: {}, spec: {} } });
    assert.equal(machines.two.workloads.has(own.metadata.uid), true);
    assert.equal((await one.call("GET", "/nodes/no-such-node")).status, 404);
  });

  test("records of older versions are adopted by the node that has the workload or the files", async () => {
    const { store } = one.app;
    const uids = async (path: string, names: string[]): Promise<string[]> =>
      Promise.all(names.map(async (name) => (await one.call("GET", `${path}/${name}`)).body.metadata.uid));
    const ours = [...(await uids("/sandboxes", ["kept", "near"])), ...(await uids("/volumes", ["first"]))];
    const theirs = await uids("/sandboxes", ["other"]);
    const ownersOf = (all: string[]): Promise<(string | null | undefined)[]> =>
      Promise.all(all.map(async (uid) => (await store.resources.getAcrossWorkspaces(uid))?.node));
    const before = await ownersOf([...ours, ...theirs]);
    await store.write(async ({ queries }) => {
      await queries
        .updateTable("resources")
        .set({ node: null })
        .where("uid", "in", [...ours, ...theirs])
        .execute();
    });
    const adopt = async (platform: TestPlatform, machine: FakeMachine): Promise<number> => {
      const list = (await store.nodes.list(60_000)).map((node) => ({ ...node, runs: true }));
      const { body } = await platform.call("GET", "/nodes");
      const self = list.find(({ id }) => id === body.find(({ isSelf }) => isSelf).id);
      const nodes = { shared: false, self, list: () => list };
      return adoptUnowned({ store, driver: fakeDriver(machine), nodes } as unknown as Deps, "another-host");
    };
    assert.equal(await adopt(one, machines.one), 1, "what this machine does not have is left to the others");
    assert.deepEqual(await ownersOf(theirs), [null]);
    assert.equal(await adopt(two, machines.two), 0);
    assert.deepEqual(await ownersOf([...ours, ...theirs]), before);
  });

  test("a server with a copy of another server's folder does not start", async (t) => {
    const copy = mkdtempSync(join(tmpdir(), "berth-copy-"));
    t.after(() => rmSync(copy, { recursive: true, force: true, maxRetries: 10 }));
    cpSync(join(two.dataDir, "node.json"), join(copy, "node.json"));
    await assert.rejects(start(machines.two, copy), /Another server already runs as node node-/);
  });

  const callSandbox = async (platform: TestPlatform, name: string): Promise<{ status: number; text: string }> => {
    const { workspace } = platform.app.bootstrapped;
    const response = await fetch(`${platform.url}/${workspace}/sandboxes/${name}/filesystem/x`, {
      headers: { authorization: `Bearer ${platform.apiKey}` },
    });
    return { status: response.status, text: await response.text() };
  };
  const servedBy = async (platform: TestPlatform): Promise<number> => {
    const metrics = await (await fetch(`${platform.url}/metrics`)).text();
    return Number(/^berth_gateway_requests_total\{kind="sandbox",code="2xx"\} (\d+)/m.exec(metrics)?.[1] ?? 0);
  };

  test("a request for a sandbox of another node is served, admitted and counted by that node", async () => {
    const before = await Promise.all([servedBy(one), servedBy(two)]);
    assert.equal((await callSandbox(two, "kept")).status, 200);
    assert.deepEqual(await Promise.all([servedBy(one), servedBy(two)]), [(before[0] ?? 0) + 1, before[1]]);
  });

  test("an operation that needs a sandbox's machine is handed to its node, once and with its body", async () => {
    const body = { targetName: "forked", targetType: "application", port: 9 };
    const answers = [];
    for (const platform of [one, two]) answers.push(await platform.call("POST", "/sandboxes/kept/fork", { body }));
    assert.deepEqual(answers[1]?.body, answers[0]?.body);
    assert.equal(answers[1]?.status, answers[0]?.status);
    const denied = await two.call("POST", "/sandboxes/kept/fork", { body, key: "nobody" });
    assert.equal(denied.status, 401);
  });

  test("the logs of a workload on another node are read there", async () => {
    const lines = async (platform: TestPlatform) => {
      const path = "/observability/logs?resourceType=sandboxes&workloadIds=kept";
      const { status, body } = await platform.call("GET", path);
      assert.equal(status, 200);
      return body.kept;
    };
    const [near, far] = [await lines(one), await lines(two)];
    assert.deepEqual(far.logs, near.logs);
    assert.deepEqual([far.totalCount, far.server], [near.totalCount, near.server]);
  });

  test("an archive that one server received is whole on the other, and is never taken for whole when it is not", async (t) => {
    const folder = mkdtempSync(join(tmpdir(), "berth-blobs-"));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    const [here, there] = [one.app.store.blobs, two.app.store.blobs];
    const content = randomBytes(3 * 512 * 1024 + 7);
    const { digest } = await openBlobStore(join(folder, "one"), here).put(Readable.from([content]), content.length);
    const found = await openBlobStore(join(folder, "two"), there).find(digest);
    assert.deepEqual(readFileSync(found ?? ""), content);
    const [{ writtenMs } = assert.fail()] = (await there.list()).filter((blob) => blob.digest === digest);
    await here.remove(digest, writtenMs - 1);
    assert.equal((await there.read(digest)) === null, false, "a file that was written again stays");
    await two.app.store.write(async ({ queries }) => {
      await queries.deleteFrom("blob_chunks").where("digest", "=", digest).where("at", "=", 2).execute();
    });
    assert.equal(await openBlobStore(join(folder, "three"), there).find(digest), null);
    await openBlobStore(join(folder, "four"), here).put(Readable.from([content]), content.length);
    assert.notEqual(await openBlobStore(join(folder, "three"), there).find(digest), null);
    const [again = assert.fail()] = (await there.list()).filter((blob) => blob.digest === digest);
    await here.remove(digest, again.writtenMs);
    assert.equal(await there.read(digest), null);
  });

  test("a request for a sandbox of a node that is away is refused at once, with the node's name", async () => {
    await one.stop();
    const { status, text } = await callSandbox(two, "kept");
    assert.equal(status, 503);
    const { error } = JSON.parse(text) as { error: { code: string; retryable: boolean; message: string } };
    assert.deepEqual([error.code, error.retryable], ["NODE_UNAVAILABLE", true]);
    assert.match(error.message, new RegExp(`The node '${hostname()}'`));
    const fork = { targetName: "x", targetType: "application" };
    const away = await two.call("POST", "/sandboxes/kept/fork", { body: fork });
    assert.deepEqual([away.status, (await two.call("GET", "/sandboxes/kept")).status], [503, 200]);
  });
});
