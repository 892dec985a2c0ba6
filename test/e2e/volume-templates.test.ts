import assert from "node:assert/strict";
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { test } from "node:test";
import { onEachDatabase } from "../each-platform.ts";
import { projectArchive } from "../project-archive.ts";

await onEachDatabase("volume templates", ({ call, make, store }) => {
  const addVersions = async (name: string, versions: object[]) => {
    const template = await store().resources.get({ workspace: "main", kind: "volumetemplate", parent: "" }, name);
    await store().resources.update("main", template?.uid ?? "", () => ({ state: { versions } }));
  };
  const volume = (template: string) =>
    call("POST", "/volumes", { body: { metadata: { name: "v" }, spec: { template } } });

  test("a template without content says so, and no volume is made of it", async () => {
    const made = await make("/volume_templates", "empty", { defaultSize: 64, description: "nothing yet" });
    assert.deepEqual(made.state, { status: "created", versionCount: 0 });
    assert.deepEqual(made.versions, []);
    assert.ok(Array.isArray((await call("GET", "/volume_templates")).body));
    assert.match((await volume("empty")).body.message, /^spec\.template: .* no version 'latest' that is ready/);
    assert.match((await volume("missing")).body.message, /^spec\.template: volumetemplate 'missing' does not exist/);
    const put = await call("PUT", "/volume_templates/empty", { body: { ...made, spec: { defaultSize: 65 } } });
    assert.equal(put.body.spec.defaultSize, 65);
    assert.equal((await call("DELETE", "/volume_templates/empty")).status, 200);
  });

  test("an archive becomes a version, once, and the next one is numbered on", async () => {
    const send = async (url: string | null, files: Record<string, string>) =>
      (await fetch(url ?? "", { method: "PUT", body: projectArchive(files) })).status;
    const ask = (query: string) =>
      call("PUT", `/volume_templates/sent?upload=true${query}`, { body: { metadata: { name: "sent" }, spec: {} } });
    const made = await call("POST", "/volume_templates?upload=true", {
      body: { metadata: { name: "sent" }, spec: {} },
    });
    const first = made.headers.get("x-service-upload-url");
    assert.deepEqual(
      [made.body.versions[0].name, made.body.versions[0].status, made.body.state],
      ["1", "CREATED", { status: "created", versionCount: 1 }],
    );
    const again = await ask("");
    assert.equal(again.body.versions[0].name, "1", "what has not come is asked for again");
    assert.equal(await send(first, { a: "old address" }), 403);
    assert.equal(await send(again.headers.get("x-service-upload-url"), { "a/b.txt": "hello" }), 200);
    assert.equal(await send(again.headers.get("x-service-upload-url"), { "a/b.txt": "twice" }), 403);
    const named = await ask("&version=v1.1");
    assert.equal(await send(named.headers.get("x-service-upload-url"), { "../out": "x" }), 400);
    assert.equal((await ask("&version=latest")).status, 400);
    // A page of the console sends to its own host, by the path alone.
    const path = (await ask("")).headers.get("x-service-upload-path") ?? "";
    assert.equal(await sendAtConsole(first ?? "", path, projectArchive({ c: "12" })), 200);
    const { body } = await call("GET", "/volume_templates/sent");
    assert.deepEqual(
      body.versions.map(({ name, status, contentSize }: Record<string, unknown>) => [name, status, contentSize]),
      [
        ["1", "READY", 5],
        ["v1.1", "FAILED", undefined],
        ["2", "READY", 2],
      ],
    );
    assert.deepEqual([body.state.status, body.state.latestVersion], ["ready", "2"]);
    const tiny = await call("POST", "/volumes", {
      body: { metadata: { name: "tiny" }, spec: { template: "sent:v1.1" } },
    });
    assert.match(tiny.body.message, /no version 'v1\.1' that is ready/);
  });

  test("versions are listed, used and deleted, but for the last one", async () => {
    await make("/volume_templates", "site", { defaultSize: 77 });
    await addVersions("site", [
      { name: "1", status: "READY", contentSize: 10, uploadedAt: "2026-01-01T00:00:00.000Z" },
      { name: "2", status: "READY", contentSize: 11, uploadedAt: "2026-01-02T00:00:00.000Z" },
      { name: "3", status: "FAILED" },
    ]);
    const { body } = await call("GET", "/volume_templates/site");
    assert.deepEqual(body.state, {
      status: "ready",
      versionCount: 3,
      latestVersion: "2",
      lastVersionUploadedAt: "2026-01-02T00:00:00.000Z",
    });
    assert.equal(body.versions[0].templateName, "site");
    const made = await volume("site:1");
    assert.deepEqual([made.status, made.body.spec.size], [200, 77]);
    assert.match((await volume("site:3")).body.message, /no version '3' that is ready/);

    const versions = "/volume_templates/site/versions";
    const gone = await call("DELETE", `${versions}/3`);
    assert.equal(gone.status, 200);
    assert.equal(gone.body.template.state.versionCount, 2);
    assert.equal((await call("DELETE", `${versions}/3`)).status, 404);
    await call("DELETE", `${versions}/1`);
    const last = await call("DELETE", `${versions}/2`);
    assert.equal(last.status, 400);
    assert.match(last.body.message, /only version/);
  });
});

/** To the port of this URL, with the name of the console host. */
async function sendAtConsole(url: string, path: string, body: Buffer): Promise<number | undefined> {
  const { hostname, port } = new URL(url);
  const sending = request({ method: "PUT", hostname, port, path, headers: { host: `console.localhost:${port}` } });
  sending.end(body);
  const [answer] = (await once(sending, "response")) as [IncomingMessage];
  answer.resume();
  return answer.statusCode;
}
