/** An image that one account lends to another: the borrower tries to get more than the image, and to keep it. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { makeAccount, makeUser } from "../identities.ts";
import { startTestPlatform, type TestPlatform } from "../platform.ts";

const MANIFEST = "application/vnd.oci.image.manifest.v1+json";
const digestOf = (bytes: Uint8Array | string): string => `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
const basic = (password: string): string => `Basic ${Buffer.from(`x:${password}`).toString("base64")}`;

const [part, draft, other] = ["part of the image", "pushed, in no image", "of another image"].map((text) =>
  Buffer.from(text),
) as [Buffer, Buffer, Buffer];

/** An artifact, which no machine unpacks. */
const artifact = (config: Uint8Array): string =>
  JSON.stringify({
    ...{ schemaVersion: 2, mediaType: MANIFEST, artifactType: "application/x-test", layers: [] },
    config: { mediaType: "application/x-test", digest: digestOf(config), size: config.length },
  });

describe("an image that is lent to another account", () => {
  let platform: TestPlatform;
  let owner: string;
  let borrower: string;
  let borrowerKey: string;

  before(async () => {
    platform = await startTestPlatform();
    owner = basic(platform.apiKey);
    const { store } = platform.app;
    const { id } = await makeAccount(store, "elsewhere");
    borrowerKey = (await makeUser(store, id, "admin", { elsewhere: "admin" })).key;
    borrower = basic(borrowerKey);
    for (const bytes of [part, draft]) await pushed("main/lent", bytes);
    await pushed("main/secret", other);
    for (const [repository, bytes] of [["main/lent", part] as const, ["main/secret", other] as const])
      assert.equal((await put(repository, artifact(bytes), owner)).status, 201);
  });
  after(() => platform?.stop());

  const ask = (path: string, authorization: string, init: RequestInit = {}): Promise<Response> =>
    fetch(`${platform.url}/v2/${path}`, { ...init, headers: { authorization, ...init.headers } });
  const pushed = async (repository: string, bytes: Buffer): Promise<void> => {
    const init = { method: "POST", body: new Uint8Array(bytes) };
    assert.equal((await ask(`${repository}/blobs/uploads/?digest=${digestOf(bytes)}`, owner, init)).status, 201);
  };
  const put = (repository: string, body: string, as: string): Promise<Response> =>
    ask(`${repository}/manifests/1`, as, { method: "PUT", body, headers: { "content-type": MANIFEST } });
  const statusOf = async (path: string, as = borrower, method = "GET"): Promise<number> =>
    (await ask(path, as, { method })).status;
  const mount = async (into: string, query: Record<string, string>): Promise<number> =>
    statusOf(`${into}/blobs/uploads/?${new URLSearchParams(query)}`, borrower, "POST");
  const share = async (): Promise<string> => {
    const offer = await platform.call("POST", "/images/sandbox/lent/share", {
      ...{ workspace: "main", body: { targetWorkspace: "elsewhere" } },
    });
    assert.equal(offer.status, 202, JSON.stringify(offer.body));
    return offer.body.id;
  };
  const accept = (id: string) =>
    platform.call("POST", `/pending-image-shares/${id}/accept`, { key: borrowerKey, workspace: "elsewhere" });
  const unshare = () => platform.call("DELETE", "/images/sandbox/lent/share/elsewhere", { workspace: "main" });
  /** A token of the registry, as clients keep it for the length of a pull. */
  const tokenFor = async (scope: string): Promise<string> => {
    const answer = await ask(`token?scope=${scope}`, borrower);
    return `Bearer ${((await answer.json()) as { token: string }).token}`;
  };

  test("an offer that nobody accepted, or that was withdrawn, opens nothing", async () => {
    const id = await share();
    for (const path of ["elsewhere/lent/manifests/1", `elsewhere/lent/blobs/${digestOf(part)}`])
      assert.equal(await statusOf(path), 404, path);
    assert.equal((await unshare()).status, 200);
    assert.equal((await accept(id)).status, 404);
    assert.equal(await statusOf("elsewhere/lent/manifests/1"), 404);
  });

  test("whoever knows a digest gets no blob of another account", async () => {
    for (const bytes of [part, draft, other]) {
      const digest = digestOf(bytes);
      assert.equal(await statusOf(`elsewhere/own/blobs/${digest}`), 404);
      assert.equal(await statusOf(`main/lent/blobs/${digest}`), 403);
      // 202: the registry begins an upload, and the bytes have to be sent.
      for (const query of [
        { mount: digest },
        { mount: digest, from: "main/lent" },
        { mount: digest, from: "main/secret" },
      ])
        assert.equal(await mount("elsewhere/own", query as Record<string, string>), 202, JSON.stringify(query));
      const manifest = await put("elsewhere/own", artifact(bytes), borrower);
      assert.deepEqual([manifest.status, (await manifest.text()).includes("BLOB_UNKNOWN")], [404, true]);
    }
  });

  test("the borrower reads the image and nothing beside it, and changes nothing", async () => {
    assert.equal((await accept(await share())).status, 200);
    assert.equal(await statusOf("elsewhere/lent/manifests/1"), 200);
    assert.equal(await statusOf(`elsewhere/lent/blobs/${digestOf(part)}`), 200);
    for (const bytes of [draft, other]) {
      const digest = digestOf(bytes);
      assert.equal(await statusOf(`elsewhere/lent/blobs/${digest}`), 404);
      assert.equal(await mount("elsewhere/own", { mount: digest, from: "elsewhere/lent" }), 202);
    }
    assert.equal(await statusOf("elsewhere/secret/manifests/1"), 404);
    const manifest = digestOf(artifact(part));
    for (const reference of ["1", manifest])
      assert.ok((await statusOf(`elsewhere/lent/manifests/${reference}`, borrower, "DELETE")) >= 400, reference);
    assert.ok((await statusOf(`elsewhere/lent/blobs/${digestOf(part)}`, borrower, "DELETE")) >= 400);
    const further = await platform.call("POST", "/images/sandbox/lent/share", {
      ...{ key: borrowerKey, workspace: "elsewhere", body: { targetWorkspace: "third" } },
    });
    assert.equal(further.status, 400, JSON.stringify(further.body));
    // The borrower's DELETE gives the image back; the owner keeps it.
    const back = await platform.call("DELETE", "/images/sandbox/lent", { key: borrowerKey, workspace: "elsewhere" });
    assert.equal(back.status, 200);
    assert.equal(await statusOf("elsewhere/lent/manifests/1"), 404);
    assert.equal(await statusOf("main/lent/manifests/1", owner), 200);
  });

  test("a share that ends during a pull ends for the tokens of that pull, too", async () => {
    assert.equal((await accept(await share())).status, 200);
    const token = await tokenFor("repository:elsewhere/lent:pull");
    assert.equal(await statusOf("elsewhere/lent/manifests/1", token), 200);
    assert.equal((await unshare()).status, 200);
    for (const as of [token, borrower])
      for (const path of [
        "elsewhere/lent/manifests/1",
        `elsewhere/lent/manifests/${digestOf(artifact(part))}`,
        `elsewhere/lent/blobs/${digestOf(part)}`,
        "elsewhere/lent/tags/list",
      ])
        assert.equal(await statusOf(path, as), 404, path);
    assert.equal(await mount("elsewhere/own", { mount: digestOf(part), from: "elsewhere/lent" }), 202);
    assert.doesNotMatch(await (await ask("_catalog", borrower)).text(), /lent|secret/);
  });
});
