/** Attacks on the registry by members who push without end, and by strangers. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { after, before, describe, test } from "node:test";
import { sweepPushed } from "../../src/kinds/image/registry/sweep.ts";
import { DAY_MS } from "../../src/lib/time/clock.ts";
import { makeAccount, makeUser } from "../identities.ts";
import { startTestPlatform, type TestPlatform } from "../platform.ts";

const MB = 2 ** 20;
const OCI = "application/vnd.oci.image";
const basic = (password: string, user = "x"): string =>
  `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`;
const digestOf = (bytes: Uint8Array | string): string => `sha256:${createHash("sha256").update(bytes).digest("hex")}`;

describe("attacks on the registry", () => {
  let platform: TestPlatform;
  let admin: string;
  let aheadMs = 0;
  const now = (): number => Date.now() + aheadMs;

  before(async () => {
    platform = await startTestPlatform({ config: { registry_max: "3", anonymous_writes: "5" }, clock: { now } });
    admin = basic(platform.apiKey);
  });
  after(() => platform?.stop());

  const ask = (path: string, init: RequestInit = {}, authorization = admin): Promise<Response> =>
    fetch(`${platform.url}/v2/${path}`, { ...init, headers: { authorization, ...init.headers } });
  const refusal = async (answer: Response): Promise<[number, string, string]> => {
    const { errors } = (await answer.json()) as { errors: { code: string; message: string }[] };
    return [answer.status, errors[0]?.code ?? "", errors[0]?.message ?? ""];
  };
  const pushBlob = (repository: string, bytes: Uint8Array): Promise<Response> =>
    ask(`${repository}/blobs/uploads/?digest=${digestOf(bytes)}`, { method: "POST", body: new Uint8Array(bytes) });
  /** An artifact, which no machine unpacks. */
  const artifact = (config: Uint8Array, note = ""): string =>
    JSON.stringify({
      schemaVersion: 2,
      mediaType: `${OCI}.manifest.v1+json`,
      artifactType: "application/x-test",
      config: { mediaType: "application/x-test", digest: digestOf(config), size: config.length },
      layers: [],
      annotations: { note },
    });
  const pushManifest = (repository: string, reference: string, body: string): Promise<Response> =>
    ask(`${repository}/manifests/${reference}`, {
      ...{ method: "PUT", body, headers: { "content-type": `${OCI}.manifest.v1+json` } },
    });

  test("wrong credentials from one workload do not lock out another", async (t) => {
    const [server] = [createServer((socket) => void doors.shift()?.(socket))];
    const doors: ((socket: Socket) => void)[] = [];
    t.after(() => server.close());
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const from = async (uid: string, password: string): Promise<string> => {
      // A connection without an address, as drivers give them.
      doors.push((socket) =>
        platform.enterFrom(uid, Object.defineProperty(socket, "remoteAddress", { value: undefined })),
      );
      const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
      client.write(`GET /v2/ HTTP/1.1\r\nHost: h\r\nConnection: close\r\nAuthorization: ${basic(password)}\r\n\r\n`);
      return (await text(client)).slice(9, 12);
    };
    for (let i = 0; i < 5; i += 1) assert.equal(await from("sandbox-a", `wrong ${i}`), "401");
    assert.equal(await from("sandbox-a", "wrong"), "429");
    assert.equal(await from("sandbox-b", "also wrong"), "401", "looked at");
  });

  test("the blobs of a workspace have a bound; a blob in two repositories counts once", async () => {
    const [one, two, small] = [Buffer.alloc(2 * MB, 1), Buffer.alloc(2 * MB, 2), Buffer.alloc(MB / 2, 3)];
    assert.equal((await pushBlob("main/a", one)).status, 201);
    assert.equal((await pushBlob("main/b", one)).status, 201);
    const [status, code, message] = await refusal(await pushBlob("main/b", two));
    assert.deepEqual([status, code], [402, "DENIED"], message);
    assert.match(message, /more than 3145728 bytes/);
    assert.equal((await ask(`main/b/blobs/${digestOf(two)}`)).status, 404);
    assert.equal((await pushBlob("main/b", small)).status, 201);
    const mount = new URLSearchParams({ mount: digestOf(one), from: "main/a" });
    assert.equal((await ask(`main/c/blobs/uploads/?${mount}`, { method: "POST" })).status, 201);
  });

  test("a sweep leaves what is pushed, mounted or named while it runs", async () => {
    const { store } = platform.app;
    const [named, again, unused] = ["named", "again", "unused"].map((word) => Buffer.from(word));
    assert.ok(named && again && unused);
    for (const bytes of [named, again, unused]) assert.equal((await pushBlob("main/swept", bytes)).status, 201);
    aheadMs = 2 * DAY_MS;
    // The push comes after the sweep has read what there is, and before it removes anything.
    const listBlobs = store.pushedImages.listBlobs;
    const pushing: typeof listBlobs = async (key) => {
      const listed = await listBlobs(key);
      if (!key.repository.endsWith("/swept")) return listed;
      assert.equal((await pushBlob("main/swept", again)).status, 201);
      assert.equal((await pushManifest("main/swept", "1", artifact(named))).status, 201);
      return listed;
    };
    const pushedImages = { ...store.pushedImages, listBlobs: pushing };
    await sweepPushed({ store: { ...store, pushedImages }, clock: { now } }, new AbortController().signal);
    const there = [];
    for (const bytes of [named, again, unused])
      there.push((await ask(`main/swept/blobs/${digestOf(bytes)}`, { method: "HEAD" })).status);
    assert.deepEqual(there, [200, 200, 404]);
    // The other way round: the sweep is first, and the manifest is refused.
    const body = artifact(unused);
    assert.deepEqual((await refusal(await pushManifest("main/swept", "2", body))).slice(0, 2), [
      404,
      "MANIFEST_BLOB_UNKNOWN",
    ]);
    const key = (await store.pushedImages.listRepositories()).find(({ repository }) => repository.endsWith("/swept"));
    assert.ok(key);
    const manifest = {
      digest: digestOf(body),
      mediaType: "x",
      content: body,
      names: [digestOf(unused)],
      subject: null,
    };
    assert.equal(await store.pushedImages.addManifest(key, manifest, MB), "incomplete");
    assert.equal(await store.pushedImages.addManifest(key, { ...manifest, names: [] }, 100), "too_large");
    aheadMs = 0;
  });

  test("of a lent image only what its manifests name is told", async () => {
    const [part, draft] = [Buffer.from("part of the image"), Buffer.from("draft that is in no image")];
    for (const bytes of [part, draft]) await pushBlob("main/lent", bytes);
    assert.equal((await pushManifest("main/lent", "1", artifact(part))).status, 201);
    await platform.call("POST", "/workspaces", { body: { name: "borrower" } });
    const shared = await platform.call("POST", "/images/sandbox/lent/share", {
      ...{ workspace: "main", body: { targetWorkspace: "borrower" } },
    });
    assert.equal(shared.status, 200, JSON.stringify(shared.body));
    const look = async (bytes: Uint8Array) =>
      (await ask(`borrower/lent/blobs/${digestOf(bytes)}`, { method: "HEAD" })).status;
    assert.deepEqual([await look(part), await look(draft)], [200, 404]);
    const mount = new URLSearchParams({ mount: digestOf(draft), from: "borrower/lent" });
    assert.equal((await ask(`borrower/own/blobs/uploads/?${mount}`, { method: "POST" })).status, 202);
    assert.equal((await ask(`main/lent/blobs/${digestOf(draft)}`, { method: "HEAD" })).status, 200);
  });

  test("a push to a workspace that is not there says so to whoever may know, and is no failed login", async () => {
    const { store } = platform.app;
    const tokenFor = async (authorization: string): Promise<string> => {
      const answer = await ask("token?scope=repository:nowhere/tool:pull,push", {}, authorization);
      return `Bearer ${((await answer.json()) as { token: string }).token}`;
    };
    const [account] = await store.people.listAccountsAcrossUsers();
    const member = basic((await makeUser(store, account?.id ?? "", "member", { main: "member" })).key);
    const push = { method: "POST" };
    const told = await refusal(await ask("nowhere/tool/blobs/uploads/", push, await tokenFor(admin)));
    assert.deepEqual(told, [403, "DENIED", "There is no workspace 'nowhere'."]);
    const { id } = await makeAccount(store, "elsewhere");
    await makeUser(store, id, "admin", { elsewhere: "admin" });
    for (const workspace of ["nowhere", "elsewhere"]) {
      const [status, code, message] = await refusal(await ask(`${workspace}/tool/blobs/uploads/`, push, member));
      assert.deepEqual([status, code], [403, "DENIED"]);
      assert.equal(message, "These credentials give no access to this repository.");
    }
  });

  test("wrong credentials are looked at so many times a minute, and tokens are in the audit log", async () => {
    assert.equal((await ask("token?scope=repository:main/a:pull", {})).status, 200);
    const [line] = await platform.app.store.audit.list({ limit: 1 });
    assert.deepEqual([line?.action, line?.target, line?.outcome], ["registryToken", "repository:main/a:pull", "ok"]);
    const statuses = [];
    for (let index = 0; index < 7; index += 1) statuses.push((await ask("token", {}, basic(`guess-${index}`))).status);
    assert.deepEqual(statuses, [401, 401, 401, 401, 401, 429, 429]);
    assert.equal((await ask("token", {})).status, 200, "right credentials of the same address go on");
    // Every user name goes with a key: made-up names must not be credentials of their own, which push out those of others.
    assert.equal((await ask("token", {}, basic(platform.apiKey, "made-up"))).status, 200, "one key is known once");
  });
});
