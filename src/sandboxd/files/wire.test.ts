/** Small things that clients of such an API rely on. */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { linesOf, skip, startSandboxd } from "../../../test/sandboxd-harness.ts";

const MB = 1024 * 1024;

test("the file API as existing clients use it", { skip }, async (t) => {
  await using d = await startSandboxd();
  mkdirSync(join(d.workDir, "sub/deep"), { recursive: true });
  writeFileSync(join(d.workDir, "sub/a.txt"), "hello");
  // Some clients encode an absolute path whole and append it to the endpoint.
  const joined = (endpoint: string, path: string): string => endpoint + encodeURIComponent(path);

  await t.test("an encoded slash separates the endpoint from an absolute path", async () => {
    const absolute = join(d.workDir, "sub");
    const raw = absolute.slice(1);
    for (const slash of ["%2F", "%2f"]) {
      assert.equal((await d.ask("GET", `/filesystem${slash}${raw}/a.txt`)).json.content, "hello");
      assert.equal((await d.ask("GET", `/filesystem/tree${slash}${raw}`)).json.path, absolute);
      assert.deepEqual((await d.ask("GET", `/filesystem-find${slash}${raw}`)).json.matches, [
        { path: "a.txt", type: "file" },
      ]);
    }
    assert.equal((await d.ask("GET", joined("/filesystem", `${absolute}/a.txt`))).json.content, "hello");
    assert.equal(
      (await d.ask("PUT", joined("/filesystem", `${absolute}/b.txt`), { body: { content: "b" } })).json.path,
      `${absolute}/b.txt`,
    );
    assert.equal(readFileSync(`${absolute}/b.txt`, "utf8"), "b");
    const watched = await d.open("GET", joined("/watch/filesystem", absolute));
    assert.equal(watched.statusCode, 200);
    writeFileSync(`${absolute}/c.txt`, "c");
    for await (const line of linesOf(watched)) {
      assert.equal(JSON.parse(line).path, absolute);
      break;
    }
    watched.destroy();
  });

  await t.test("the limit of a JSON write counts the content, not its escapes", async () => {
    const content = "\u0001".repeat(2 * MB);
    const body = JSON.stringify({ content });
    assert.ok(body.length > 6 * MB);
    const put = (path: string, sent: unknown) =>
      d.ask("PUT", path, { headers: { "content-type": "application/json" }, body: sent });
    assert.equal((await put("/filesystem/escaped.txt", body)).status, 200);
    assert.equal(readFileSync(join(d.workDir, "escaped.txt"), "utf8"), content);
    assert.equal((await put("/filesystem/full.txt", { content: "x".repeat(5 * MB) })).status, 200);
    assert.equal((await put("/filesystem/large.txt", { content: "x".repeat(5 * MB + 1) })).status, 413);
    const half = "ü".repeat(MB + 1);
    const tree = `/filesystem/tree/${d.workDir}/tree`;
    assert.equal((await put(tree, { files: { a: half, b: half, c: half } })).status, 413);
    assert.equal((await put(tree, { files: { a: half, b: half } })).status, 200);
  });

  await t.test("media types of downloads and of streamed output have no charset", async () => {
    for (const [name, type] of [
      ["a.txt", "text/plain"],
      ["p.html", "text/html"],
      ["s.js", "text/javascript"],
    ] as const) {
      writeFileSync(join(d.workDir, name), "x");
      assert.equal((await d.ask("GET", `/filesystem/${name}?download=true`)).headers["content-type"], type);
    }
    const streamed = await d.ask("POST", "/process", {
      headers: { accept: "text/event-stream" },
      body: { command: "echo x" },
    });
    assert.equal(streamed.headers["content-type"], "application/x-ndjson");
  });

  await t.test("the total of found folders counts the one that the search starts in", async () => {
    const find = async (query: string) => (await d.ask("GET", `/filesystem-find/sub?${query}`)).json;
    assert.deepEqual(await find("type=directory"), { matches: [{ path: "deep", type: "directory" }], total: 2 });
    assert.equal((await find("type=directory&patterns=deep")).total, 1);
    assert.equal((await find("patterns=a.txt")).total, 1);
  });

  await t.test("a process tells the time limit in force", async () => {
    const timeoutOf = async (more: Record<string, unknown>) => {
      const { json } = await d.exec("true", more);
      assert.equal((await d.ask("GET", `/process/${json.pid}`)).json.timeout, json.timeout);
      return json.timeout;
    };
    assert.equal(await timeoutOf({}), 0);
    assert.equal(await timeoutOf({ timeout: 50 }), 50);
    assert.equal(await timeoutOf({ keepAlive: true }), 600);
    assert.equal(await timeoutOf({ keepAlive: true, timeout: -1 }), 600);
    assert.equal(await timeoutOf({ keepAlive: true, timeout: 0 }), 0);
    assert.equal(await timeoutOf({ keepAlive: true, timeout: 70 }), 70);
  });
});
