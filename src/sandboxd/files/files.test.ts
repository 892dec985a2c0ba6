import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { eventually, formOf, skip, startSandboxd } from "../../../test/sandboxd-harness.ts";

const encoded = (path: string): string => `/filesystem/${encodeURIComponent(path)}`;

test("paths", { skip }, async (t) => {
  await using d = await startSandboxd();
  writeFileSync(join(d.workDir, "a.txt"), "relative");
  writeFileSync(join(d.folder, "a.txt"), "in the folder");

  await t.test(
    "absolute when a slash follows the prefix, plain or encoded; else relative to the work dir",
    async () => {
      const absolute = join(d.folder, "a.txt");
      const cases: [string, string][] = [
        ["/filesystem/a.txt", "relative"],
        ["/filesystem/./a.txt", "relative"],
        [`/filesystem/${absolute}`, "in the folder"],
        [encoded(absolute), "in the folder"],
        [`/filesystem/${encodeURIComponent(absolute).replaceAll("%2F", "%2f")}`, "in the folder"],
        ["/filesystem/../a.txt", "in the folder"],
        ["/filesystem/%2e%2e/a.txt", "in the folder"],
        ["/filesystem/~/a.txt", "in the folder"],
        // As the SDKs and the command line write them: no client changes a path of one segment.
        ["/filesystem/.%2Fa.txt", "relative"],
        ["/filesystem/.%2F..%2Fa.txt", "in the folder"],
        ["/filesystem/~%2Fa.txt", "in the folder"],
        ["/filesystem/.%2Ftree%2F..%2Fa.txt", "relative"],
        [`http://host/filesystem/${absolute}`, "in the folder"],
      ];
      for (const [path, content] of cases) {
        const { status, json } = await d.ask("GET", path);
        assert.deepEqual([status, json.content], [200, content], path);
      }
    },
  );

  await t.test("the work dir itself, and the root", async () => {
    for (const path of ["/filesystem", "/filesystem/", "/filesystem/."]) {
      const { json } = await d.ask("GET", path);
      assert.equal(json.path, d.workDir);
      assert.deepEqual(
        json.files.map((file: { name: string }) => file.name),
        ["a.txt"],
      );
    }
    assert.equal((await d.ask("GET", "/filesystem//")).json.path, "/");
    assert.equal((await d.ask("GET", "/filesystem/%2F")).json.path, "/");
  });

  await t.test("malformed paths are refused", async () => {
    for (const path of ["/filesystem/%00", "/filesystem/a%0", "/filesystem/%zz", `/filesystem/${"a/".repeat(8000)}`]) {
      const { status, json } = await d.ask("GET", path);
      assert.equal(status, 400, path.slice(0, 40));
      assert.equal(typeof json.error, "string");
    }
    assert.equal((await d.ask("GET", `/filesystem/${"n".repeat(300)}`)).status, 422);
    assert.equal((await d.ask("GET", "/filesystem/none/at/all")).status, 404);
    assert.equal((await d.ask("GET", "/filesystem/a.txt/below")).status, 422);
  });
});

test("reading", { skip }, async (t) => {
  await using d = await startSandboxd();
  const file = join(d.workDir, "page.html");
  writeFileSync(file, "0123456789", { mode: 0o640 });
  utimesSync(file, 1_700_000_000, 1_700_000_000);

  await t.test("JSON by default", async () => {
    for (const headers of [{}, { accept: "*/*" }, { accept: "application/json" }]) {
      const { json } = await d.ask("GET", "/filesystem/page.html", { headers });
      const { lastModified, owner, group, ...rest } = json;
      assert.deepEqual(rest, { path: file, name: "page.html", permissions: "0640", size: 10, content: "0123456789" });
      assert.equal(new Date(lastModified).getTime(), 1_700_000_000_000);
      assert.deepEqual(
        [owner, group],
        execFileSync("stat", ["-c", "%U %G", file], { encoding: "utf8" }).trim().split(" "),
      );
    }
  });

  await t.test("bytes when asked for, and ranges of them", async () => {
    const asked: [string, Record<string, string>][] = [
      ["/filesystem/page.html?download=true", {}],
      ["/filesystem/page.html", { accept: "application/octet-stream" }],
      ["/filesystem/page.html", { accept: "text/html" }],
    ];
    for (const [path, headers] of asked) {
      const answer = await d.ask("GET", path, { headers });
      assert.equal(answer.text, "0123456789");
      assert.match(answer.headers["content-disposition"] ?? "", /^attachment; filename="page.html"/);
      assert.match(answer.headers["content-type"] ?? "", /^text\/html/);
      assert.equal(answer.headers["content-length"], "10");
    }
    const ranges: [string, number, string, string | undefined][] = [
      ["bytes=2-4", 206, "234", "bytes 2-4/10"],
      ["bytes=7-", 206, "789", "bytes 7-9/10"],
      ["bytes=-3", 206, "789", "bytes 7-9/10"],
      ["bytes=5-500", 206, "56789", "bytes 5-9/10"],
      ["bytes=0-1,4-5", 200, "0123456789", undefined],
      ["bytes=5-2", 200, "0123456789", undefined],
      ["chars=1-2", 200, "0123456789", undefined],
    ];
    for (const [range, status, text, contentRange] of ranges) {
      const answer = await d.ask("GET", "/filesystem/page.html?download=true", { headers: { range } });
      assert.deepEqual(
        [answer.status, answer.text, answer.headers["content-range"]],
        [status, text, contentRange],
        range,
      );
    }
    const beyond = await d.ask("GET", "/filesystem/page.html?download=true", { headers: { range: "bytes=10-" } });
    assert.deepEqual([beyond.status, beyond.headers["content-range"]], [416, "bytes */10"]);
    assert.equal(typeof beyond.json.error, "string");
  });

  await t.test("empty files and files of /proc, which only look empty", async () => {
    writeFileSync(join(d.workDir, "empty"), "");
    assert.equal((await d.ask("GET", "/filesystem/empty")).json.content, "");
    assert.equal((await d.ask("GET", "/filesystem/empty?download=true")).text, "");
    assert.match((await d.ask("GET", encoded("/proc/self/status"))).json.content, /^Name:/);
    assert.match((await d.ask("GET", `${encoded("/proc/self/status")}?download=true`)).text, /^Name:/);
  });

  await t.test("devices, FIFOs and sockets are refused at once", async () => {
    execFileSync("mkfifo", [join(d.workDir, "fifo")]);
    for (const path of [join(d.workDir, "fifo"), "/dev/zero", "/dev/null", d.config.apiSocket]) {
      for (const query of ["", "?download=true"]) {
        const { status, json } = await d.ask("GET", encoded(path) + query);
        assert.equal(status, 422, path);
        assert.match(json.error, /not a regular file/);
      }
      assert.equal((await d.ask("PUT", encoded(path), { body: { content: "x" } })).status, 422, path);
      assert.equal(
        (await d.ask("PUT", encoded(path), formOf([{ name: "file", filename: "f", content: "x" }]))).status,
        422,
      );
    }
  });

  await t.test("large text is streamed as JSON", async () => {
    const line = `"quoted" \\ back ünïcode \u0001 ${"x".repeat(100)}\n`;
    const content = line.repeat(200_000);
    writeFileSync(join(d.workDir, "large.txt"), content);
    const { json, headers } = await d.ask("GET", "/filesystem/large.txt");
    assert.equal(headers["transfer-encoding"], "chunked");
    assert.ok(json.content === content);
    assert.equal(json.name, "large.txt");
  });

  await t.test("100 MB come through whole, and a reader that stops costs nothing", async () => {
    const bytes = randomBytes(100 * 1024 * 1024);
    writeFileSync(join(d.workDir, "big.bin"), bytes);
    const answer = await d.ask("GET", "/filesystem/big.bin?download=true");
    assert.ok(answer.bytes.equals(bytes));
    const stuck = await d.open("GET", "/filesystem/big.bin?download=true");
    stuck.pause();
    const memory = () =>
      Number(/RssAnon:\s+(\d+)/.exec(readFileSync(`/proc/${d.process.pid}/status`, "utf8"))?.[1]) / 1024;
    assert.ok(memory() < 150, `${memory()} MB`);
    stuck.destroy();
  });
});

test("folders", { skip }, async (t) => {
  await using d = await startSandboxd();

  await t.test("names with newlines and bytes that are no text", async () => {
    const odd = join(d.workDir, "odd");
    mkdirSync(odd);
    const name = Buffer.concat([Buffer.from(`${odd}/bad`), Buffer.of(0xff, 0xfe)]);
    writeFileSync(name, "strange");
    writeFileSync(join(odd, "new\nline"), "");
    writeFileSync(join(odd, 'quote" \\'), "");
    const { json } = await d.ask("GET", "/filesystem/odd");
    assert.deepEqual(
      json.files.map((file: { name: string }) => file.name).sort(),
      ["new\nline", 'quote" \\', "bad\ufffd\ufffd"].sort(),
    );
    assert.equal((await d.ask("GET", "/filesystem/odd/bad%FF%FE")).json.content, "strange");
    assert.equal((await d.ask("DELETE", "/filesystem/odd/bad%ff%fe")).status, 200);
    writeFileSync(name, "strange");
    assert.equal((await d.ask("DELETE", "/filesystem/odd?recursive=true")).status, 200);
    assert.ok(!existsSync(odd));
  });

  await t.test("links count as what they point at; broken ones are files", async () => {
    const links = join(d.workDir, "links");
    mkdirSync(links);
    symlinkSync("/etc", join(links, "folder"));
    symlinkSync("/etc/hostname", join(links, "file"));
    symlinkSync("/nowhere", join(links, "broken"));
    symlinkSync("loop", join(links, "loop"));
    const { json } = await d.ask("GET", "/filesystem/links");
    assert.deepEqual(json.subdirectories, [{ path: join(links, "folder"), name: "folder", target: "/etc" }]);
    assert.deepEqual(
      json.files.map((file: { name: string }) => file.name),
      ["broken", "file", "loop"],
    );
    assert.equal((await d.ask("GET", "/filesystem/links/loop")).status, 422);
    assert.equal((await d.ask("GET", "/filesystem/links/broken")).status, 404);
  });

  await t.test("ten thousand files", async () => {
    const many = join(d.workDir, "many");
    mkdirSync(many);
    for (let i = 0; i < 10_000; i += 1) writeFileSync(join(many, `file-${i}`), "");
    const { json } = await d.ask("GET", "/filesystem/many");
    assert.equal(json.files.length, 10_000);
    assert.equal(json.truncated, undefined);
    assert.equal((await d.ask("DELETE", "/filesystem/many")).status, 422);
    assert.equal((await d.ask("DELETE", "/filesystem/many?recursive=true")).status, 200);
  });
});

test("writing", { skip }, async (t) => {
  await using d = await startSandboxd();
  const at = (name: string): string => join(d.workDir, name);

  await t.test("JSON content, parents, permissions, overwriting", async () => {
    const first = await d.ask("PUT", "/filesystem/deep/er/f.sh", {
      body: { content: "#!/bin/sh\nü", permissions: "0755" },
    });
    assert.deepEqual([first.status, first.json.path, typeof first.json.message], [200, at("deep/er/f.sh"), "string"]);
    assert.equal(readFileSync(at("deep/er/f.sh"), "utf8"), "#!/bin/sh\nü");
    assert.equal(statSync(at("deep/er/f.sh")).mode & 0o777, 0o755);
    const inode = statSync(at("deep/er/f.sh")).ino;
    await d.ask("PUT", "/filesystem/deep/er/f.sh", { body: { content: "short" } });
    assert.equal(readFileSync(at("deep/er/f.sh"), "utf8"), "short");
    assert.deepEqual([statSync(at("deep/er/f.sh")).ino, statSync(at("deep/er/f.sh")).mode & 0o777], [inode, 0o755]);
    await d.ask("PUT", "/filesystem/new", { body: {} });
    assert.deepEqual([readFileSync(at("new"), "utf8"), statSync(at("new")).mode & 0o777], ["", 0o644]);
  });

  await t.test("directories", async () => {
    assert.equal((await d.ask("PUT", "/filesystem/dir/sub", { body: { isDirectory: true } })).status, 200);
    assert.equal(statSync(at("dir/sub")).mode & 0o777, 0o755);
    assert.equal(
      (await d.ask("PUT", "/filesystem/dir/tight", { body: { isDirectory: true, permissions: "700" } })).status,
      200,
    );
    assert.equal(statSync(at("dir/tight")).mode & 0o777, 0o700);
    assert.equal((await d.ask("PUT", "/filesystem/dir/sub", { body: { isDirectory: true } })).status, 200);
  });

  await t.test("refusals", async () => {
    const cases: [string, unknown, number][] = [
      ["/filesystem/x", { content: "x", permissions: "rwx" }, 400],
      ["/filesystem/x", { content: "x", permissions: "99999" }, 400],
      ["/filesystem/x", { content: 5 }, 400],
      ["/filesystem/x", "{nope", 400],
      ["/filesystem/dir", { content: "x" }, 422],
      ["/filesystem/new/below", { content: "x" }, 422],
      ["/filesystem/new", { isDirectory: true }, 422],
      ["/filesystem//proc/nope", { content: "x" }, 422],
    ];
    for (const [path, body, status] of cases) {
      const answer = await d.ask("PUT", path, { body });
      assert.equal(answer.status, status, `${path} ${JSON.stringify(body)}`);
      assert.equal(typeof answer.json.error, "string");
    }
    assert.ok(!existsSync(at("x")));
  });

  await t.test("forms: the file first, permissions after it, the URL decides", async () => {
    const bytes = randomBytes(300_000);
    const form = formOf([
      { name: "path", content: "/etc/passwd" },
      { name: "file", filename: 'odd "name".bin', content: bytes },
      { name: "file", filename: "second", content: "not this one" },
      { name: "permissions", content: "0600" },
    ]);
    const answer = await d.ask("PUT", "/filesystem/form.bin", form);
    assert.deepEqual([answer.status, answer.json.path], [200, at("form.bin")]);
    assert.ok(readFileSync(at("form.bin")).equals(bytes));
    assert.equal(statSync(at("form.bin")).mode & 0o777, 0o600);
    await d.ask("PUT", "/filesystem/form.bin", formOf([{ name: "file", filename: "f", content: "" }]));
    assert.deepEqual([statSync(at("form.bin")).size, statSync(at("form.bin")).mode & 0o777], [0, 0o600]);
  });

  await t.test("content that looks like a boundary", async () => {
    const tricky = "\r\n--\r\n------boundary-of-the-tes\r\n\r\n----boundary-of-the-test\r\n\r";
    await d.ask("PUT", "/filesystem/tricky", formOf([{ name: "file", filename: "f", content: tricky }]));
    assert.equal(readFileSync(at("tricky"), "latin1"), tricky);
  });

  await t.test("malformed forms leave nothing behind", async () => {
    const good = formOf([{ name: "file", filename: "f", content: "x".repeat(1000) }]);
    const body = good.body as Buffer;
    const cases = [
      { ...good, headers: { "content-type": "multipart/form-data" } },
      { ...good, body: body.subarray(0, body.length - 30) },
      { ...good, body: Buffer.from("nothing of the kind") },
      formOf([{ name: "other", filename: "f", content: "x" }]),
      formOf([{ name: "file", content: "no file name" }]),
      { ...good, body: Buffer.concat([Buffer.from("------boundary-of-the-test\r\n"), Buffer.alloc(20_000, 97)]) },
    ];
    for (const bad of cases) assert.equal((await d.ask("PUT", "/filesystem/bad.bin", bad)).status, 400);
    assert.ok(!existsSync(at("bad.bin")));
    assert.deepEqual(
      readdirSync(d.workDir).filter((name) => name.startsWith(".upload")),
      [],
    );
  });

  await t.test("plain bytes", async () => {
    const bytes = randomBytes(1000);
    const headers = { "content-type": "application/octet-stream" };
    assert.equal((await d.ask("PUT", "/filesystem/raw.bin?permissions=0700", { headers, body: bytes })).status, 200);
    assert.ok(readFileSync(at("raw.bin")).equals(bytes));
    assert.equal(statSync(at("raw.bin")).mode & 0o777, 0o700);
  });

  await t.test("a large upload is streamed, and a broken one changes nothing", async () => {
    const chunk = randomBytes(1024 * 1024);
    const digest = createHash("sha256");
    const upload = (path: string, megabytes: number, breakOff: boolean) =>
      new Promise<number>((resolve, reject) => {
        const headers = { "content-type": "application/octet-stream", "content-length": 300 * chunk.length };
        const put = request({ socketPath: d.config.apiSocket, method: "PUT", path, headers }, (response) => {
          response.resume();
          resolve(response.statusCode ?? 0);
        });
        put.on("error", breakOff ? () => resolve(0) : reject);
        const next = (left: number): void => {
          if (left === 0) return void (breakOff ? put.destroy() : put.end());
          put.write(chunk, () => next(left - 1));
        };
        next(megabytes);
      });
    for (let i = 0; i < 300; i += 1) digest.update(chunk);
    assert.equal(await upload("/filesystem/huge.bin", 300, false), 200);
    assert.equal(
      createHash("sha256")
        .update(readFileSync(at("huge.bin")))
        .digest("hex"),
      digest.digest("hex"),
    );
    const memory = Number(/RssAnon:\s+(\d+)/.exec(readFileSync(`/proc/${d.process.pid}/status`, "utf8"))?.[1]) / 1024;
    assert.ok(memory < 120, `${memory} MB`);
    writeFileSync(at("huge.bin"), "the old content");
    await upload("/filesystem/huge.bin", 5, true);
    await eventually(() => readdirSync(d.workDir).every((name) => !name.startsWith(".upload")));
    assert.equal(readFileSync(at("huge.bin"), "utf8"), "the old content");
  });

  await t.test("through a link the target is replaced, not the link", async () => {
    writeFileSync(at("target"), "old");
    symlinkSync("target", at("link"));
    await d.ask("PUT", "/filesystem/link", formOf([{ name: "file", filename: "f", content: "by form" }]));
    assert.ok(lstatSync(at("link")).isSymbolicLink());
    assert.equal(readFileSync(at("target"), "utf8"), "by form");
    await d.ask("PUT", "/filesystem/link", { body: { content: "by JSON" } });
    assert.equal(readFileSync(realpathSync(at("link")), "utf8"), "by JSON");
  });
});

test("deleting", { skip }, async () => {
  await using d = await startSandboxd();
  const at = (name: string): string => join(d.workDir, name);
  mkdirSync(at("full/sub"), { recursive: true });
  writeFileSync(at("full/sub/f"), "");
  mkdirSync(at("empty"));
  writeFileSync(at("file"), "");
  symlinkSync("full", at("link"));
  assert.equal((await d.ask("DELETE", "/filesystem/none")).status, 404);
  assert.equal((await d.ask("DELETE", "/filesystem/full")).status, 422);
  assert.equal((await d.ask("DELETE", "/filesystem//?recursive=true")).status, 422);
  assert.equal((await d.ask("DELETE", "/filesystem/full?recursive=maybe")).status, 400);
  assert.deepEqual((await d.ask("DELETE", "/filesystem/file")).json.path, at("file"));
  assert.equal((await d.ask("DELETE", "/filesystem/empty")).status, 200);
  assert.equal((await d.ask("DELETE", "/filesystem/link?recursive=true")).status, 200);
  assert.ok(existsSync(at("full/sub/f")));
  assert.equal((await d.ask("DELETE", "/filesystem/full?recursive=true")).status, 200);
  assert.deepEqual(readdirSync(d.workDir), []);
});

test("trees", { skip }, async (t) => {
  await using d = await startSandboxd();
  const root = join(d.folder, "tree-root");

  await t.test("writes many files and tells what is there", async () => {
    const body = { files: { "a.txt": "A", "sub/b.txt": "B", "sub/deeper/c": "", "ü\n": "odd" } };
    const { status, json } = await d.ask("PUT", `/filesystem/tree/${root}`, { body });
    assert.equal(status, 200);
    assert.equal(json.path, root);
    assert.deepEqual(
      json.files.map((file: { name: string }) => file.name),
      ["a.txt", "ü\n"],
    );
    assert.deepEqual(json.subdirectories, [{ path: join(root, "sub"), name: "sub" }]);
    assert.equal(readFileSync(join(root, "sub/b.txt"), "utf8"), "B");
  });

  await t.test("the path is absolute however it is written", async () => {
    for (const path of [
      `//${root.slice(1)}`,
      `/${encodeURIComponent(root)}`,
      `/${root.slice(1)}`,
      `/${encodeURIComponent(root.slice(1))}`,
    ]) {
      assert.equal((await d.ask("GET", `/filesystem/tree${path}`)).json.path, root, path);
    }
  });

  await t.test("refusals", async () => {
    assert.equal((await d.ask("GET", `/filesystem/tree/${root}/a.txt`)).status, 400);
    assert.equal((await d.ask("GET", `/filesystem/tree/${root}/none`)).status, 404);
    assert.equal((await d.ask("DELETE", `/filesystem/tree/${root}/a.txt`)).status, 400);
    assert.equal((await d.ask("DELETE", `/filesystem/tree/${root}`)).status, 422);
    for (const files of [{ "../out": "x" }, { "a/../../out": "x" }, { f: 5 }, ["x"], "x"]) {
      const answer = await d.ask("PUT", `/filesystem/tree/${root}`, { body: { files } });
      assert.equal(answer.status, 400, JSON.stringify(files));
    }
    assert.ok(!existsSync(join(d.folder, "out")));
    assert.equal(
      (await d.ask("PUT", `/filesystem/tree/${root}`, { body: { files: { "/etc/x": "kept inside" } } })).status,
      200,
    );
    assert.equal(readFileSync(join(root, "etc/x"), "utf8"), "kept inside");
  });

  await t.test("deletes recursively", async () => {
    assert.equal((await d.ask("DELETE", `/filesystem/tree/${root}?recursive=true`)).status, 200);
    assert.ok(!existsSync(root));
    rmSync(root, { force: true });
  });
});
