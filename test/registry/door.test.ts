/** The platform's registry at `/v2/`: pushes, pulls, and who may do which. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { promisify } from "node:util";
import { MINUTE_MS } from "../../src/lib/time/clock.ts";
import { debianEnv, unpackedDebian } from "../debian-packages.ts";
import { makeAccount, makeUser } from "../identities.ts";
import { tar } from "../image-archive.ts";
import { type Answer, startTestPlatform, type TestPlatform } from "../platform.ts";
import { addSignature } from "./cosign.ts";
import {
  ARCHITECTURE,
  addImage,
  addIndex,
  digestOf,
  type FakeRegistry,
  OCI,
  startFakeRegistry,
} from "./fake-registry.ts";
import { bottom, gzip, place, top } from "./pull-place.ts";
import { pushImage } from "./push-image.ts";

const S390 = { os: "linux", architecture: "s390x" };

const basic = (user: string, password: string): string =>
  `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`;

suite("the registry", () => {
  let platform: TestPlatform;
  let source: FakeRegistry;
  let admin: string;
  let aheadMs = 0;
  /** A member of another account. */
  let stranger: string;

  before(async () => {
    source = await startFakeRegistry();
    platform = await startTestPlatform({
      config: { registries: source.host, private_connections: "true", image_max: "1" },
      clock: { now: () => Date.now() + aheadMs },
    });
    admin = basic("any", platform.apiKey);
    const { id } = await makeAccount(platform.app.store, "theirs");
    stranger = basic("x", (await makeUser(platform.app.store, id, "admin", { theirs: "admin" })).key);
  });
  after(async () => {
    await source?.[Symbol.asyncDispose]();
    await platform?.stop();
  });

  const ask = (path: string, authorization: string | null, init: RequestInit = {}): Promise<Response> =>
    fetch(`${platform.url}/v2/${path}`, {
      ...init,
      headers: { ...(authorization === null ? {} : { authorization }), ...init.headers },
    });
  const codeOf = async (answer: Response): Promise<[number, string]> => {
    const { errors } = (await answer.json()) as { errors?: { code: string; message: string }[] };
    assert.ok(errors?.[0]?.message, "every refusal says why");
    return [answer.status, errors[0].code];
  };

  test("an image is pushed, listed as a record, and pulled as it was", async (t) => {
    const manifest = addImage(source, "tool:1", { layers: [bottom, top], pack: gzip });
    await pushImage(platform.url, source, "tool:1", { authorization: admin, to: "main/tool:1.2" });
    const { body } = await platform.call("GET", "/images/sandbox/tool");
    const [tag] = body.spec.tags;
    assert.deepEqual([tag.name, tag.digest, tag.status], ["1.2", manifest, "DEPLOYED"]);
    assert.equal(body.metadata.events.at(-1).type, "pushed");
    // Our own client, with the token that the registry asks for.
    const host = new URL(platform.url).host;
    const { pull } = await place(t);
    const credentials = () => ({ username: "any", password: platform.apiKey });
    const pulled = await pull(`${host}/main/tool:1.2`, credentials);
    assert.equal(pulled.digest, manifest);
    const made = await platform.call("POST", "/sandboxes", {
      body: { metadata: { name: "box" }, spec: { runtime: { image: "tool:1.2" } } },
    });
    assert.equal(made.status, 200, JSON.stringify(made.body));
    const kept = await ask("main/tool/manifests/1.2", admin, { method: "DELETE" });
    assert.equal(kept.status, 400, "a workload uses it");
    await platform.call("DELETE", "/sandboxes/box");
  });

  const skopeo = unpackedDebian("skopeo", ["skopeo", "libgpgme11", "libassuan0", "libgpg-error0"]);
  const missing = skopeo === null ? "skopeo could not be fetched from Debian's archive (apt-get download)" : false;

  test("skopeo copies an index here and away, lists its tags and deletes one", { skip: missing }, async (t) => {
    const dir = mkdtempSync(join(tmpdir(), "skopeo-"));
    t.after(() => rmSync(dir, { recursive: true, force: true }));
    const run = async (...args: string[]): Promise<string> => {
      const env = { ...debianEnv(skopeo ?? "/"), HOME: dir, XDG_RUNTIME_DIR: dir };
      return (await promisify(execFile)("skopeo", ["--insecure-policy", ...args], { env })).stdout;
    };
    const mine = addImage(source, null, { layers: [bottom, top], pack: gzip });
    const other = addImage(source, null, { layers: [bottom], pack: gzip, platform: S390 });
    const index = addIndex(source, "both:1", [
      { digest: other, platform: S390 },
      { digest: mine, platform: { os: "linux", architecture: ARCHITECTURE } },
    ]);
    const host = new URL(platform.url).host;
    const [from, to] = [`docker://${source.host}/both:1`, `docker://${host}/main/both:1`];
    const here = ["--dest-tls-verify=false", "--dest-creds", `any:${platform.apiKey}`];
    await run("copy", "-q", "--all", "--preserve-digests", "--src-tls-verify=false", ...here, from, to);
    const { body } = await platform.call("GET", "/images/sandbox/both");
    assert.deepEqual([body.spec.tags[0].digest, body.spec.tags[0].status], [mine, "DEPLOYED"]);
    const away = ["--src-tls-verify=false", "--src-creds", `any:${platform.apiKey}`];
    await run("copy", "-q", "--all", "--preserve-digests", ...away, to, `dir:${dir}/copy`);
    assert.equal(digestOf(readFileSync(join(dir, "copy/manifest.json"))), index);
    const asked = ["--tls-verify=false", "--creds", `any:${platform.apiKey}`];
    assert.deepEqual(JSON.parse(await run("list-tags", ...asked, `docker://${host}/main/both`)).Tags, ["1"]);
    await run("delete", ...asked, to);
    assert.equal((await ask("main/both/manifests/1", admin)).status, 404);
    await assert.rejects(
      run("copy", "-q", "--src-tls-verify=false", "--dest-tls-verify=false", from, to),
      /unauthorized/,
    );
  });

  test("clients are told how to sign in, and a token does what it was given for", async () => {
    const asked = await ask("", null);
    assert.deepEqual(await codeOf(asked), [401, "UNAUTHORIZED"]);
    const realm = /realm="([^"]+)",service="([^"]+)"/.exec(asked.headers.get("www-authenticate") ?? "");
    assert.ok(realm?.[1]?.endsWith("/v2/token"));
    assert.deepEqual(await codeOf(await ask("", basic("any", "wrong"))), [401, "UNAUTHORIZED"]);
    assert.equal((await ask("", admin)).status, 200);
    assert.equal((await ask("", `Bearer ${platform.apiKey}`)).status, 200);
    const tokenFor = async (scope: string, authorization: string): Promise<string> => {
      const answer = await ask(`token?${new URLSearchParams({ scope })}`, authorization);
      return `Bearer ${((await answer.json()) as { token: string }).token}`;
    };
    const reads = await tokenFor("repository:main/tool:pull", admin);
    assert.equal((await ask("main/tool/manifests/1.2", reads)).status, 200);
    const push = { method: "POST" };
    assert.deepEqual(await codeOf(await ask("main/tool/blobs/uploads/", reads, push)), [401, "UNAUTHORIZED"]);
    assert.deepEqual(await codeOf(await ask("main/other/manifests/1", reads)), [401, "UNAUTHORIZED"]);
    const more = await tokenFor("repository:main/tool:pull,push", reads);
    assert.equal((await ask("main/tool/blobs/uploads/", more, push)).status, 401, "no token gives more than itself");
    aheadMs = 20 * MINUTE_MS;
    const renewed = await tokenFor("repository:main/tool:pull", reads);
    assert.equal((await ask("main/tool/manifests/1.2", renewed)).status, 200);
    aheadMs = 40 * MINUTE_MS;
    assert.equal((await ask("main/tool/manifests/1.2", renewed)).status, 401, "no token makes itself live longer");
    aheadMs = 0;
    const form = new URLSearchParams({ grant_type: "password", username: "a", password: platform.apiKey });
    form.set("scope", "repository:main/tool:push");
    const posted = (await (await ask("token", null, { method: "POST", body: form })).json()) as { token: string };
    assert.equal((await ask("main/tool/blobs/uploads/", `Bearer ${posted.token}`, push)).status, 202);
    // A key for reading pushes nothing, and a service account signs in with its secret.
    const { store } = platform.app;
    const [account] = await store.people.listAccountsAcrossUsers();
    const reader = await makeUser(store, account?.id ?? "", "member", { main: "member" }, ["images:get"]);
    const wide = await tokenFor("repository:main/tool:pull,push", basic("x", reader.key));
    assert.equal((await ask("main/tool/manifests/1.2", wide)).status, 200);
    assert.deepEqual(await codeOf(await ask("main/tool/blobs/uploads/", wide, push)), [403, "DENIED"]);
    const refused = await ask("main/tool/blobs/uploads/", basic("x", reader.key), push);
    assert.deepEqual(await codeOf(refused), [403, "DENIED"]);
    const made = await store.keys.createServiceAccount({
      ...{ workspace: "main", name: "pusher", description: "", role: "member", createdBy: "test" },
    });
    const robot = basic(made.account.client_id, made.secret);
    assert.equal((await ask("main/tool/blobs/uploads/", robot, push)).status, 202);
    assert.equal((await ask("main/tool/blobs/uploads/", basic(made.account.client_id, "wrong"), push)).status, 401);
  });

  test("a digest gives nobody a layer that they may not read", async () => {
    const secret = tar([{ path: "secret", content: "of main" }]);
    const digest = addImage(source, "private:1", { layers: [secret] });
    await pushImage(platform.url, source, "private:1", { authorization: admin, to: "main/private:1" });
    const layer = digestOf(secret);
    assert.equal((await ask(`main/private/blobs/${layer}`, admin, { method: "HEAD" })).status, 200);
    for (const path of [`main/private/blobs/${layer}`, `main/private/manifests/${digest}`, "main/private/tags/list"])
      assert.deepEqual(await codeOf(await ask(path, stranger)), [403, "DENIED"], path);
    assert.deepEqual(await codeOf(await ask("nobody/x/tags/list", stranger)), [403, "DENIED"], "as if it were there");
    // By digest through a repository of their own.
    assert.deepEqual(await codeOf(await ask(`theirs/mine/blobs/${layer}`, stranger)), [404, "BLOB_UNKNOWN"]);
    // By a mount from the repository that has it: the upload begins as if nothing had been asked.
    const mount = new URLSearchParams({ mount: layer, from: "main/private" });
    const begun = await ask(`theirs/mine/blobs/uploads/?${mount}`, stranger, { method: "POST" });
    assert.equal(begun.status, 202);
    assert.deepEqual(await codeOf(await ask(`theirs/mine/blobs/${layer}`, stranger)), [404, "BLOB_UNKNOWN"]);
    // By a manifest that names it.
    const config = source.blobs.get(JSON.parse(source.blobs.get(digest)?.toString() ?? "").config.digest);
    assert.ok(config);
    const put = await ask(`theirs/mine/blobs/uploads/?digest=${digestOf(config)}`, stranger, {
      ...{ method: "POST", body: new Uint8Array(config) },
    });
    assert.equal(put.status, 201);
    const body = new Uint8Array(source.blobs.get(digest) ?? Buffer.alloc(0));
    const headers = { "content-type": `${OCI}.manifest.v1+json` };
    const claimed = await ask("theirs/mine/manifests/1", stranger, { method: "PUT", body, headers });
    assert.deepEqual(await codeOf(claimed), [404, "MANIFEST_BLOB_UNKNOWN"]);
    // Other images of one's own workspace are other repositories, too; a mount between them is allowed.
    assert.equal((await ask(`main/tool/blobs/${layer}`, admin)).status, 404);
    assert.equal((await ask(`main/tool/blobs/uploads/?${mount}`, admin, { method: "POST" })).status, 201);
    assert.equal((await ask(`main/tool/blobs/${layer}`, admin)).status, 200);
    // An upload belongs to the repository that it was begun in.
    const location = (await ask("main/private/blobs/uploads/", admin, { method: "POST" })).headers.get("location");
    const id = location?.split("/").at(-1);
    const foreign = await ask(`theirs/mine/blobs/uploads/${id}`, stranger, { method: "PATCH", body: "x" });
    assert.deepEqual(await codeOf(foreign), [404, "BLOB_UPLOAD_UNKNOWN"]);
    // An image that is deleted is readable for nobody, and a later one of the same name has nothing of it.
    await platform.call("DELETE", "/images/sandbox/private");
    assert.deepEqual(await codeOf(await ask(`main/private/blobs/${layer}`, admin)), [404, "BLOB_UNKNOWN"]);
  });

  test("uploads in parts, ranges, and what is not what it claims to be", async () => {
    const bytes = Buffer.from("0123456789".repeat(100));
    const digest = digestOf(bytes);
    const begin = async (): Promise<string> =>
      (await ask("main/parts/blobs/uploads/", admin, { method: "POST" })).headers.get("location")?.slice(4) ?? "";
    const upload = await begin();
    const part = (from: number, to: number): RequestInit => ({
      ...{ method: "PATCH", body: new Uint8Array(bytes.subarray(from, to)) },
      headers: { "content-range": `${from}-${to - 1}` },
    });
    assert.equal((await ask(upload, admin, part(0, 400))).headers.get("range"), "0-399");
    assert.deepEqual(await codeOf(await ask(upload, admin, part(500, 600))), [416, "RANGE_INVALID"]);
    assert.equal((await ask(upload, admin)).headers.get("range"), "0-399");
    assert.equal((await ask(upload, admin, part(400, 1000))).status, 202);
    assert.equal((await ask(`${upload}?digest=${digest}`, admin, { method: "PUT" })).status, 201);
    const blob = `main/parts/blobs/${digest}`;
    const ranges: [string, number, string][] = [
      ["bytes=990-", 206, "0123456789"],
      ["bytes=0-3", 206, "0123"],
      ["bytes=-2", 206, "89"],
      ["bytes=1000-", 416, ""],
    ];
    for (const [range, status, text] of ranges) {
      const answer = await ask(blob, admin, { headers: { range } });
      assert.equal(answer.status, status, range);
      if (status === 206) assert.equal(await answer.text(), text);
    }
    const wrong = await ask(`${await begin()}?digest=${digest}`, admin, { method: "PUT", body: "other" });
    assert.deepEqual(await codeOf(wrong), [400, "DIGEST_INVALID"]);
    // Too large a part is refused before it is sent.
    const large = request(`${platform.url}/v2/${await begin()}`, {
      ...{ method: "PATCH", headers: { authorization: admin, "content-length": 2 ** 20 + 1 } },
    });
    large.on("error", () => {}); // the server closes the connection
    large.flushHeaders();
    const [tooLarge] = (await once(large, "response")) as [IncomingMessage];
    assert.equal(tooLarge.statusCode, 413);
    large.destroy();
    const cancelled = await begin();
    assert.equal((await ask(cancelled, admin, { method: "DELETE" })).status, 204);
    assert.equal((await ask(cancelled, admin)).status, 404);
    const put = (text: string, type = `${OCI}.manifest.v1+json`, at = "1"): Promise<Response> =>
      ask(`main/parts/manifests/${at}`, admin, { method: "PUT", body: text, headers: { "content-type": type } });
    const descriptor = { mediaType: `${OCI}.config.v1+json`, digest, size: bytes.length };
    const document = (config: object): string => JSON.stringify({ schemaVersion: 2, config, layers: [] });
    const rows: [Promise<Response>, [number, string]][] = [
      [put("{"), [400, "MANIFEST_INVALID"]],
      [put("{}"), [400, "MANIFEST_INVALID"]],
      [put(document(descriptor), "text/plain"), [400, "MANIFEST_INVALID"]],
      [put(document({ ...descriptor, size: 7 })), [400, "SIZE_INVALID"]],
      [put(document({ ...descriptor, digest: digestOf(Buffer.from("?")) })), [404, "MANIFEST_BLOB_UNKNOWN"]],
      [put(document(descriptor), undefined, digest), [400, "DIGEST_INVALID"]],
      [put(document(descriptor), undefined, "-x"), [400, "TAG_INVALID"]],
      [put(document(descriptor)), [400, "MANIFEST_INVALID"]], // its configuration is no JSON
      [put(`{"x":"${"y".repeat(4 * 2 ** 20)}"}`), [413, "SIZE_INVALID"]],
    ];
    for (const [answer, expected] of rows) assert.deepEqual(await codeOf(await answer), expected);
    assert.equal((await ask("main/parts/tags/list", admin)).status, 404, "nothing is left of them");
    assert.deepEqual(await codeOf(await ask("main/Parts/tags/list", admin)), [400, "NAME_INVALID"]);
    assert.deepEqual(await codeOf(await ask("_catalog", admin)), [404, "UNSUPPORTED"]);
    assert.deepEqual(await codeOf(await ask(blob, admin, { method: "DELETE" })), [405, "UNSUPPORTED"]);
  });

  test("tags in pages, what refers to an image, and deletes", async () => {
    for (const tag of ["b", "a", "c"]) {
      addImage(source, `many:${tag}`, { layers: [bottom], config: { Env: [`T=${tag}`] } });
      await pushImage(platform.url, source, `many:${tag}`, { authorization: admin, to: `main/agent/many:${tag}` });
    }
    const first = await ask("main/agent/many/tags/list?n=2", admin);
    assert.deepEqual(await first.json(), { name: "main/agent/many", tags: ["a", "b"] });
    assert.match(first.headers.get("link") ?? "", /<\/v2\/main\/agent\/many\/tags\/list\?n=2&last=b>; rel="next"/);
    assert.deepEqual(await (await ask("main/many/tags/list?last=b", admin)).json(), { name: "main/many", tags: ["c"] });
    assert.equal((await platform.call("GET", "/images/agent/many")).status, 200);
    // A signature is kept beside the image, and nothing tries to run it.
    const subject = source.tags.get("many:a") ?? "";
    const signature = { mediaType: "application/vnd.dev.cosign.simplesigning.v1+json", bytes: (tar: Buffer) => tar };
    addImage(source, "many:sig", {
      ...{ layers: [Buffer.from("{}")], pack: signature },
      manifest: (manifest) => ({
        ...manifest,
        subject: { mediaType: `${OCI}.manifest.v1+json`, digest: subject, size: source.blobs.get(subject)?.length },
      }),
    });
    await pushImage(platform.url, source, "many:sig", { authorization: admin, to: "main/agent/many:sig" });
    const referrers = (await (await ask(`main/many/referrers/${subject}`, admin)).json()) as { manifests: object[] };
    assert.equal(referrers.manifests.length, 1);
    // Large manifests come in pages.
    const { config } = JSON.parse(source.blobs.get(source.tags.get("many:sig") ?? "")?.toString() ?? "");
    for (let number = 0; number < 3; number += 1) {
      const annotations = { number: `${number}`.repeat(4_100_000) };
      const about = { mediaType: `${OCI}.manifest.v1+json`, digest: subject, size: 1 };
      const body = JSON.stringify({ schemaVersion: 2, config, layers: [], subject: about, annotations });
      const headers = { "content-type": `${OCI}.manifest.v1+json` };
      const at = `main/agent/many/manifests/${digestOf(Buffer.from(body))}`;
      assert.equal((await ask(at, admin, { method: "PUT", body, headers })).status, 201);
    }
    const counts: number[] = [];
    for (let path: string | undefined = `main/many/referrers/${subject}`; path !== undefined; ) {
      const answer = await ask(path, admin);
      counts.push(((await answer.json()) as { manifests: object[] }).manifests.length);
      path = /<\/v2\/([^>]+)>/.exec(answer.headers.get("link") ?? "")?.[1];
    }
    assert.equal(counts.length, 2);
    assert.equal((counts[0] ?? 0) + (counts[1] ?? 0), 4);
    const entry = { mediaType: `${OCI}.manifest.v1+json`, digest: subject, size: source.blobs.get(subject)?.length };
    const index = JSON.stringify({ schemaVersion: 2, manifests: Array.from({ length: 257 }, () => entry) });
    const wide = { method: "PUT", body: index, headers: { "content-type": `${OCI}.index.v1+json` } };
    assert.deepEqual(await codeOf(await ask("main/agent/many/manifests/wide", admin, wide)), [400, "MANIFEST_INVALID"]);
    // By tag one tag goes, by digest the manifest with all of its tags.
    assert.equal((await ask("main/many/manifests/b", admin, { method: "DELETE" })).status, 202);
    assert.equal((await ask(`main/many/manifests/${source.tags.get("many:b")}`, admin)).status, 200);
    assert.equal((await ask(`main/many/manifests/${subject}`, admin, { method: "DELETE" })).status, 202);
    assert.deepEqual(await codeOf(await ask("main/many/manifests/a", admin)), [404, "MANIFEST_UNKNOWN"]);
    assert.equal((await ask(`main/many/manifests/${subject}`, admin)).status, 404);
    const { body } = await platform.call("GET", "/audit");
    const seen = (body.data ?? body).map(
      (entry: { action: string; target: string }) => `${entry.action} ${entry.target}`,
    );
    assert.ok(seen.includes("imageLoad agent/many/sig"), seen.join("\n"));
    assert.ok(seen.includes("imageTagDelete _/many/b"));
  });

  test("a workspace that runs signed images only refuses all others with the reason", async () => {
    const keys = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const other = generateKeyPairSync("ed25519");
    const pem = keys.publicKey.export({ type: "spki", format: "pem" });
    await platform.call("POST", "/workspaces", { body: { name: "signed" } });
    const setKeys = (publicKeys: unknown[]): Promise<Answer> =>
      platform.call("PUT", "/workspaces/signed", { body: { runtime: { imageSignatures: { publicKeys } } } });
    const secret = keys.privateKey.export({ type: "pkcs8", format: "pem" });
    for (const wrong of [[], ["x"], [secret]]) assert.equal((await setKeys(wrong)).status, 400);
    assert.equal((await setKeys([pem])).status, 200);
    let count = 0;
    const start = async (image: string): Promise<Answer> => {
      count += 1;
      const body = { metadata: { name: `signed-${count}` }, spec: { runtime: { image } } };
      return platform.call("POST", "/sandboxes", { body, workspace: "signed" });
    };
    const refused = async (image: string, reason: RegExp): Promise<void> => {
      const { status, body } = await start(image);
      assert.deepEqual([status, body.code], [400, "INVALID_IMAGE"], image);
      assert.match(body.message, reason);
      assert.match(body.message, /the workspace 'signed' runs signed images only/);
    };
    const image = (name: string, env: string): string => {
      addImage(source, name, { layers: [bottom], config: { Env: [env] } });
      return `${source.host}/${name}`;
    };
    // Of a registry: without a signature, by another key, for another image, spoiled, and a good one.
    await refused(image("plain:1", "A=1"), /is not signed/);
    const byOther = image("by-other:1", "A=2");
    addSignature(source, "by-other:1", other.privateKey);
    await refused(byOther, /no signature of sha256:.* is by a key of the workspace/);
    const forAnother = image("for-another:1", "A=3");
    addSignature(source, "for-another:1", keys.privateKey, { claims: source.tags.get("plain:1") ?? "" });
    await refused(forAnother, /no signature of/);
    const spoiled = image("spoiled:1", "A=4");
    addSignature(source, "spoiled:1", keys.privateKey, { spoil: (made) => made.subarray(1) });
    await refused(spoiled, /no signature of/);
    const good = image("good:1", "A=5");
    addSignature(source, "good:1", keys.privateKey);
    const ran = await start(good);
    assert.equal(ran.status, 200, JSON.stringify(ran.body));
    assert.equal(ran.body.imageSource, `${good}@${source.tags.get("good:1")}`);
    // What was verified once is not asked for again.
    const asked = source.seen.filter((each) => each.endsWith(".sig")).length;
    assert.equal((await start(good)).status, 200);
    assert.equal(source.seen.filter((each) => each.endsWith(".sig")).length, asked);
    // Pushed here, first without and then with its signature.
    const push = { authorization: admin };
    addImage(source, "own:1", { layers: [top] });
    await pushImage(platform.url, source, "own:1", { ...push, to: "signed/own:1" });
    await refused("own:1", /is not signed/);
    const tag = addSignature(source, "own:1", keys.privateKey);
    await pushImage(platform.url, source, tag, { ...push, to: tag.replace("own:", "signed/own:") });
    assert.equal((await start("own:1")).status, 200);
    // A file has no signature; the platform's own image needs none, and its digest is in the record, too.
    const upload = await fetch(`${platform.url}/v0/images/sandbox/file/tags/1`, {
      ...{ method: "PUT", body: new Uint8Array(bottom) },
      headers: { authorization: `Bearer ${platform.apiKey}`, "x-service-workspace": "signed" },
    });
    const loaded = (await upload.json()) as { spec: { tags: { digest: string }[] } };
    assert.match(loaded.spec.tags[0]?.digest ?? "", /^sha256:/);
    await refused("file:1", /loaded from a file or built here/);
    const base = await start("service/base-image:latest");
    assert.match(base.body.imageSource, /^service\/base-image:latest@sha256:/);
    assert.match(base.body.events.at(-1).message, /It runs service\/base-image:latest@sha256:/);
    // A key that is taken out of the list counts no longer.
    await setKeys([other.publicKey.export({ type: "spki", format: "pem" })]);
    await refused(good, /no signature of/);
    assert.equal((await start(byOther)).status, 200);
  });
});
