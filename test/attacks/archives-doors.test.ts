/** Every door of a real server through which a tenant's archive or file tree comes in, attacked once. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { gzipSync } from "node:zlib";
import { Canary } from "../canary.ts";
import { dockerSave, type Entry, tar } from "../image-archive.ts";
import { machineSkip, sandboxSuite } from "../sandbox-suite.ts";
import { eventually } from "../sandboxd-harness.ts";
import { zip } from "../zip-archive.ts";

describe("doors for archives", { skip: machineSkip }, () => {
  const suite = sandboxSuite();
  const canary = new Canary();
  before(() => suite.start({ standby_after: "60" }));
  after(async () => {
    await suite.stop();
    canary[Symbol.dispose]();
  });
  const call = (method: string, path: string, body?: object) =>
    suite.platform().call(method, path, body === undefined ? {} : { body });
  const put = (url: string, body: Buffer, headers: Record<string, string> = {}) =>
    fetch(url, { method: "PUT", body: new Uint8Array(body), headers });

  const throughLink: Entry[] = [
    { path: "a/b/", type: "5", mode: 0o755 },
    { path: "a/b/.wh.precious" },
    { path: "a/b", type: "2", link: canary.dir },
    { path: "a/b/precious", content: "changed" },
  ];

  test("an image", async () => {
    const { url, apiKey } = suite.platform();
    const send = (archive: Buffer) =>
      put(`${url}/v0/images/sandbox/evil/tags/1`, archive, {
        authorization: `Bearer ${apiKey}`,
        "content-type": "application/x-tar",
      });
    assert.equal((await send(dockerSave([tar(throughLink)]))).status, 200, "inside the image all of it is allowed");
    const refused = await send(dockerSave([tar([{ path: "a/.wh..." }])]));
    assert.equal(refused.status, 400);
    assert.match(((await refused.json()) as { message: string }).message, /removes something that has no name/);
    canary.assertUntouched();
  });

  const hostileFiles: [string, Buffer, RegExp][] = [
    ["a link", gzipSync(tar(throughLink.slice(2))), /only files and folders can be sent/],
    ["a path that leads out", tar([{ path: `${"../".repeat(30)}${canary.dir}/x`, content: "x" }]), /leads out/],
    ["an absolute path", zip([{ path: `${canary.dir}/x`, content: "x" }]), /absolute/],
    ["a link in a zip", zip([{ path: "l", content: canary.dir, mode: 0o120777 }]), /only files and folders/],
  ];

  test("code of a workload", async () => {
    for (const [index, [what, archive, reason]] of hostileFiles.entries()) {
      const metadata = { name: `evil-${index}` };
      const made = await call("POST", "/agents?upload=true", { metadata, spec: { runtime: { memory: 512 } } });
      assert.equal((await put(made.headers.get("x-service-upload-url") ?? "", archive)).status, 200);
      let events = "";
      await eventually(async () => {
        const { body } = await call("GET", `/agents/evil-${index}`);
        events = JSON.stringify(body.events);
        return body.status === "FAILED";
      });
      assert.match(events, reason, what);
      await call("DELETE", `/agents/evil-${index}`);
    }
    canary.assertUntouched();
  });

  test("files of a volume template", async () => {
    for (const [index, [what, archive, reason]] of hostileFiles.entries()) {
      const metadata = { name: `evil-${index}` };
      const made = await call("POST", "/volume_templates?upload=true", { metadata, spec: {} });
      const answer = await put(made.headers.get("x-service-upload-url") ?? "", archive);
      assert.equal(answer.status, 400, what);
      assert.match(((await answer.json()) as { message: string }).message, reason, what);
    }
    const good = await call("POST", "/volume_templates?upload=true", { metadata: { name: "good" }, spec: {} });
    const sent = await put(
      good.headers.get("x-service-upload-url") ?? "",
      zip([{ path: "a/b.txt", content: "hello" }]),
    );
    assert.equal(sent.status, 200);
    assert.equal((await call("POST", "/volumes", { metadata: { name: "v" }, spec: { template: "good" } })).status, 200);
    await suite.create("reader", { volumes: [{ name: "v", mountPath: "/v" }] });
    assert.equal((await suite.exec("reader", "cat /v/a/b.txt")).body.stdout, "hello");
    canary.assertUntouched();
  });

  test("files that are imported into a volume", async () => {
    const { url, apiKey } = suite.platform();
    assert.equal((await call("POST", "/volumes", { metadata: { name: "filled" }, spec: { size: 16 } })).status, 200);
    const send = (archive: Buffer) =>
      put(`${url}/v0/volumes/filled/import`, archive, {
        authorization: `Bearer ${apiKey}`,
        "content-type": "application/x-tar",
      });
    const bomb: [string, Buffer, RegExp] = [
      "more than the volume holds",
      gzipSync(tar([{ path: "big", content: Buffer.alloc(17 * 1024 * 1024).toString("latin1") }])),
      /too large/,
    ];
    // A volume takes links as they are; nothing is written through one.
    const [link, ...others] = hostileFiles;
    assert.ok(link);
    const writtenThrough: typeof bomb = [link[0], link[1], /both a file and a folder/];
    for (const [what, archive, reason] of [writtenThrough, ...others, bomb]) {
      const answer = await send(archive);
      assert.equal(answer.status, 400, what);
      assert.match(((await answer.json()) as { message: string }).message, reason, what);
    }
    assert.equal((await send(tar([{ path: "a.txt", content: "hello" }]))).status, 200, "a refusal leaves it empty");
    canary.assertUntouched();
  });

  test("the files of a sandbox that become a snapshot and another sandbox", async () => {
    await suite.create("origin");
    const made = await suite.exec(
      "origin",
      `mkdir -p /t/b && cd /t && ln -s ${canary.dir} out && ln -s ${canary.dir}/precious precious && touch .wh.out '.wh...' b/.wh..wh..opq && echo kept > file`,
    );
    assert.equal(made.body.exitCode, 0, JSON.stringify(made.body));
    const snapshot = await call("POST", "/sandboxes/origin/snapshots", { name: "evil" });
    assert.equal(snapshot.status, 200, JSON.stringify(snapshot.body));
    const fork = await call("POST", "/sandboxes/origin/fork", {
      targetName: "copy",
      targetType: "sandbox",
      snapshotId: snapshot.body.id,
    });
    assert.equal(fork.status, 200, JSON.stringify(fork.body));
    assert.equal((await suite.exec("copy", "cat /t/file; readlink /t/out")).body.stdout, `kept\n${canary.dir}\n`);
    assert.notEqual((await suite.exec("copy", "cat /t/precious")).body.exitCode, 0);
    assert.equal((await call("DELETE", `/sandboxes/origin/snapshots/${snapshot.body.id}`)).status, 204);
    canary.assertUntouched();
  });
});
