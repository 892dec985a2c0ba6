import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { formOf, skip, startSandboxd, type TestDaemon } from "../../../test/sandboxd-harness.ts";

const part = (d: TestDaemon, id: string, number: number, content: Buffer | string) =>
  d.ask(
    "PUT",
    `/filesystem-multipart/${id}/part?partNumber=${number}`,
    formOf([{ name: "file", filename: "p", content }]),
  );

test("uploads in parts", { skip }, async (t) => {
  await using d = await startSandboxd();
  const initiate = async (name: string, body: unknown = {}): Promise<string> =>
    (await d.ask("POST", `/filesystem-multipart/initiate/${name}`, { body })).json.uploadId;

  await t.test("parts in any order become the file", async () => {
    const { status, json } = await d.ask("POST", "/filesystem-multipart/initiate/deep/big.bin", {
      body: { permissions: "0600" },
    });
    assert.deepEqual([status, json.path], [200, join(d.workDir, "deep/big.bin")]);
    const parts = [randomBytes(5 * 1024 * 1024), randomBytes(5 * 1024 * 1024), randomBytes(1234)];
    const sent = await Promise.all([2, 0, 1].map((i) => part(d, json.uploadId, i + 1, parts[i] ?? "")));
    for (const answer of sent) {
      const content = parts[answer.json.partNumber - 1] ?? Buffer.alloc(0);
      const etag = createHash("md5").update(content).digest("hex");
      assert.deepEqual(answer.json, { partNumber: answer.json.partNumber, etag, size: content.length });
    }
    const listed = await d.ask("GET", `/filesystem-multipart/${json.uploadId}/parts`);
    assert.deepEqual(
      listed.json.parts.map((one: { partNumber: number }) => one.partNumber),
      [1, 2, 3],
    );
    const all = await d.ask("GET", "/filesystem-multipart");
    const [upload] = all.json.uploads;
    assert.deepEqual(
      [upload.uploadId, upload.permissions, Object.keys(upload.parts)],
      [json.uploadId, 0o600, ["1", "2", "3"]],
    );
    const done = await d.ask("POST", `/filesystem-multipart/${json.uploadId}/complete`, {
      body: { parts: sent.map((answer) => answer.json) },
    });
    assert.deepEqual([done.status, done.json.path], [200, join(d.workDir, "deep/big.bin")]);
    assert.ok(readFileSync(join(d.workDir, "deep/big.bin")).equals(Buffer.concat(parts)));
    assert.equal(statSync(join(d.workDir, "deep/big.bin")).mode & 0o777, 0o600);
    assert.deepEqual(readdirSync(join(d.workDir, "deep")), ["big.bin"]);
    assert.deepEqual((await d.ask("GET", "/filesystem-multipart")).json.uploads, []);
  });

  await t.test("a part sent again replaces the first; plain bytes are taken too", async () => {
    const id = await initiate("again.bin");
    await part(d, id, 1, "first try");
    const { json } = await d.ask("PUT", `/filesystem-multipart/${id}/part?partNumber=1`, { body: "second" });
    assert.equal((await d.ask("GET", `/filesystem-multipart/${id}/parts`)).json.parts.length, 1);
    assert.equal(
      (await d.ask("POST", `/filesystem-multipart/${id}/complete`, { body: { parts: [json] } })).status,
      200,
    );
    assert.equal(readFileSync(join(d.workDir, "again.bin"), "utf8"), "second");
  });

  await t.test("refusals", async () => {
    const id = await initiate("bad.bin");
    const { json } = await part(d, id, 1, "x");
    const complete = (parts: unknown) => d.ask("POST", `/filesystem-multipart/${id}/complete`, { body: { parts } });
    const wrong: [Promise<{ status: number }>, number][] = [
      [part(d, id, 0, "x"), 400],
      [part(d, id, 10001, "x"), 400],
      [d.ask("PUT", `/filesystem-multipart/${id}/part`, { body: "x" }), 400],
      [d.ask("PUT", `/filesystem-multipart/${id}/part?partNumber=two`, { body: "x" }), 400],
      [d.ask("PUT", `/filesystem-multipart/${id}/part?partNumber=2`, formOf([{ name: "other", content: "x" }])), 400],
      [complete([{ partNumber: 1, etag: "0".repeat(32) }]), 500],
      [complete([{ partNumber: 2, etag: json.etag }]), 400],
      [complete([]), 400],
      [complete("x"), 400],
      [complete([json, json]), 400],
      [complete([{ partNumber: "1", etag: json.etag }]), 400],
      [part(d, "unknown", 1, "x"), 404],
      [part(d, "..%2f..%2fetc", 1, "x"), 404],
      [d.ask("GET", "/filesystem-multipart/unknown/parts"), 404],
      [d.ask("DELETE", "/filesystem-multipart/unknown/abort"), 404],
      [d.ask("POST", "/filesystem-multipart/unknown/complete", { body: { parts: [] } }), 404],
      [d.ask("POST", "/filesystem-multipart/initiate/x", { body: { permissions: "zzz" } }), 400],
    ];
    for (const [i, [answer, status]] of wrong.entries()) assert.equal((await answer).status, status, `case ${i}`);
    mkdirSync(join(d.workDir, "folder"));
    assert.equal((await d.ask("POST", "/filesystem-multipart/initiate/folder", { body: {} })).status, 422);
    assert.equal((await d.ask("DELETE", `/filesystem-multipart/${id}/abort`)).status, 200);
    assert.ok(!existsSync(join(d.workDir, "bad.bin")));
    assert.deepEqual(
      readdirSync(d.workDir).filter((name) => name.startsWith(".upload")),
      [],
    );
  });
});
