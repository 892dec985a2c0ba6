import assert from "node:assert/strict";
import { test } from "node:test";
import { onEachDatabase } from "../each-platform.ts";

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
