import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { closed, skip, startSandboxd } from "../../../test/sandboxd-harness.ts";

test("every answer", { skip }, async (t) => {
  await using d = await startSandboxd({ config: { env: { ENABLE_PROCESSING_TIME: "1" } } });

  await t.test("carries the headers that browsers and caches need", async () => {
    for (const [method, path] of [
      ["GET", "/health"],
      ["GET", "/nowhere"],
      ["OPTIONS", "/process"],
      ["HEAD", "/process"],
    ] as const) {
      const { headers } = await d.ask(method, path);
      assert.equal(headers["access-control-allow-origin"], "*");
      assert.equal(headers["access-control-allow-methods"], "GET, POST, PUT, DELETE, HEAD, OPTIONS");
      assert.equal(headers["access-control-allow-headers"], "Content-Type, Authorization");
      assert.match(headers["cache-control"] ?? "", /no-store/);
      assert.equal(headers["x-content-type-options"], "nosniff");
      assert.match(String(headers["server-timing"]), /^sandbox;dur=\d/);
    }
  });

  await t.test("OPTIONS is 204, HEAD is 200, the root welcomes any method", async () => {
    assert.equal((await d.ask("OPTIONS", "/anything")).status, 204);
    for (const path of ["/process", "/filesystem/none", "/process/none", "/mcp", "/upgrade", "/terminal"]) {
      const { status, bytes } = await d.ask("HEAD", path);
      assert.deepEqual([status, bytes.length], [200, 0], path);
    }
    assert.equal((await d.ask("HEAD", "/nowhere")).status, 404);
    for (const method of ["GET", "POST", "PUT", "DELETE"]) {
      const { status, json } = await d.ask(method, "/");
      assert.deepEqual([status, Object.keys(json)], [200, ["message", "documentation", "description"]]);
    }
  });

  await t.test("is a JSON error where there is nothing", async () => {
    const unknown = await d.ask("GET", "/nowhere");
    assert.deepEqual([unknown.status, Object.keys(unknown.json)], [404, ["error"]]);
    const method = await d.ask("PATCH", "/process");
    assert.deepEqual([method.status, Object.keys(method.json), method.headers.allow], [405, ["error"], "GET, POST"]);
    const large = await d.ask("POST", "/process", { body: Buffer.alloc(65 * 1024 * 1024, 32) }).catch(() => null);
    assert.ok(large === null || large.status === 413);
    assert.equal((await d.ask("GET", "/health")).status, 200);
  });

  await t.test("survives what is no HTTP", async () => {
    for (const bytes of [
      "\0\0\0\0",
      "GET\r\n\r\n",
      "GET / HTTP/9.9\r\n\r\n",
      `GET /${"x".repeat(100_000)} HTTP/1.1\r\n\r\n`,
    ]) {
      const socket = connect(d.config.apiSocket);
      const over = closed(socket);
      socket.end(bytes);
      socket.resume();
      await over;
    }
    assert.equal((await d.ask("GET", "/health")).status, 200);
  });
});

test("clients that leave at any moment do no harm", { skip }, async () => {
  await using d = await startSandboxd();
  writeFileSync(join(d.workDir, "big"), Buffer.alloc(5_000_000, 97));
  await d.ask("POST", "/process", { body: { command: "yes", name: "yes" } });
  const requests = [
    "GET /filesystem/big HTTP/1.1\r\nHost: x\r\n\r\n",
    "GET /filesystem/big?download=true HTTP/1.1\r\nHost: x\r\n\r\n",
    "GET /process/yes/logs HTTP/1.1\r\nHost: x\r\n\r\n",
    "GET /process/yes/logs/stream HTTP/1.1\r\nHost: x\r\n\r\n",
    "GET /watch/filesystem/** HTTP/1.1\r\nHost: x\r\n\r\n",
    "GET /filesystem-content-search//usr?query=zzzzz HTTP/1.1\r\nHost: x\r\n\r\n",
    `POST /process HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nContent-Length: 34\r\n\r\n{"command": "yes|head -c 3000000"}`,
    "PUT /filesystem/put HTTP/1.1\r\nHost: x\r\nContent-Type: application/octet-stream\r\nContent-Length: 9999\r\n\r\nabc",
    "PUT /filesystem/put HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n{",
  ];
  for (let round = 0; round < 8; round += 1) {
    for (const request of requests) {
      const socket = connect(d.config.apiSocket);
      const over = closed(socket);
      socket.write(request);
      // Disconnects before the answer, or after a part of it has come.
      const answered = new Promise((done) => socket.once("data", done));
      if (round % 2 === 1) await Promise.race([answered, over, d.ask("GET", "/health")]);
      socket.destroy();
    }
  }
  assert.equal((await d.ask("GET", "/health")).status, 200);
  assert.equal(d.process.exitCode, null);
});

test("health", { skip }, async () => {
  await using d = await startSandboxd();
  const { json } = await d.ask("GET", "/health");
  assert.deepEqual(Object.keys(json).sort(), [
    "arch",
    "buildTime",
    "gitCommit",
    "goVersion",
    "lastUpgrade",
    "os",
    "startedAt",
    "status",
    "upgradeCount",
    "uptime",
    "uptimeSeconds",
    "version",
  ]);
  assert.deepEqual([json.status, json.upgradeCount, json.lastUpgrade.status], ["ok", 0, "idle"]);
  for (const path of [d.config.apiSocket, d.config.portSocket, d.config.controlSocket]) {
    assert.equal(statSync(path).mode & 0o777, 0o600);
  }
  assert.equal(statSync(d.config.stateDir).mode & 0o777, 0o700);
});

test("a sandbox that was warmed up knows nothing of it", { skip }, async () => {
  await using d = await startSandboxd({
    config: (folder) => ({
      logDir: undefined as never, // left to the environment
      claimFile: join(folder, "claim.json"),
      env: { SANDBOX_LOG_DIR: join(folder, "before") },
    }),
  });
  const body = { command: "echo warm; exit 3", waitForCompletion: true };
  const warmed = await d.ask("POST", "/warm", { socket: "control", body });
  assert.deepEqual([warmed.status, warmed.json.exitCode, warmed.json.logs], [200, 3, "warm\n"]);
  const message = Buffer.from(JSON.stringify({ process: { cmd: "/bin/sh", args: ["-c", "exit 4"] } }));
  const framed = await d.ask("POST", "/warm/e2b", {
    ...{ socket: "control", headers: { "content-type": "application/connect+json" } },
    body: Buffer.concat([Buffer.from([0, 0, 0, 0, message.length]), message]),
  });
  assert.match(framed.text, /"exitCode":4/);
  assert.deepEqual((await d.ask("GET", "/process")).json, []);
  assert.deepEqual(readdirSync(join(d.folder, "before")), []);
  const after = join(d.folder, "after");
  writeFileSync(join(d.folder, "claim.json"), JSON.stringify({ env: { SANDBOX_LOG_DIR: after } }));
  assert.equal((await d.exec("echo mine", { name: "mine" })).json.logs, "mine\n");
  assert.deepEqual(readdirSync(after), ["mine.stderr.log", "mine.stdout.log"]);
});

test("the environment", { skip }, async (t) => {
  await using d = await startSandboxd({
    config: (folder) => ({
      env: { FROM: "config" },
      metadataFile: join(folder, "metadata.json"),
      claimFile: join(folder, "claim.json"),
    }),
    env: { FROM: "init", ONLY: "init" },
  });
  const echo = async (text: string) => (await d.exec(`printf %s "${text}"`)).json.stdout;

  await t.test("comes from init, then the configuration, then a claim", async () => {
    assert.equal(await echo("$FROM $ONLY"), "config init");
    writeFileSync(join(d.folder, "claim.json"), " ".repeat(4096));
    assert.equal(await echo("$FROM $ONLY"), "config init");
    const other = join(d.folder, "other");
    mkdirSync(other);
    const value = "quotes ' \" $HOME\nnew line \\ ü";
    const claim = { env: { FROM: "claim", ODD: value }, workDir: other };
    const begun = (await d.ask("GET", "/health")).json.startedAt;
    writeFileSync(join(d.folder, "claim.json"), JSON.stringify(claim).padEnd(4096));
    assert.equal(await echo("$FROM $ONLY|$ODD"), `claim init|${value}`);
    const { startedAt } = (await d.ask("GET", "/health")).json;
    assert.ok(Date.parse(startedAt) > Date.parse(begun), "it began when it became somebody's");
    assert.equal((await d.exec("pwd")).json.stdout, `${other}\n`);
    assert.equal((await d.ask("GET", "/filesystem/")).json.path, other);
    assert.equal((await d.ask("GET", "/nope", { socket: "control" })).status, 404);
    assert.equal((await d.ask("POST", "/warm")).status, 404);
  });

  await t.test("is reloaded from the metadata file", async () => {
    assert.equal((await d.ask("POST", "/environment/reload")).status, 404);
    writeFileSync(
      join(d.folder, "metadata.json"),
      JSON.stringify({ generation: 3, environment: { NEW: "1", FROM: "file" } }),
    );
    const first = await d.ask("POST", "/environment/reload");
    assert.deepEqual(first.json, { generation: 3, applied: 2, removed: 0 });
    assert.equal(await echo("$FROM $NEW"), "file 1");
    writeFileSync(
      join(d.folder, "metadata.json"),
      JSON.stringify({ generation: 4, environment: [{ name: "NEW", value: "2" }] }),
    );
    assert.deepEqual((await d.ask("POST", "/environment/reload")).json, { generation: 4, applied: 1, removed: 1 });
    assert.equal(await echo("$FROM $NEW"), "claim 2");
    writeFileSync(join(d.folder, "metadata.json"), "{");
    assert.equal((await d.ask("POST", "/environment/reload")).status, 500);
  });
});

test("files in the daemon's folder do not configure it", { skip }, async () => {
  await using d = await startSandboxd({
    config: (folder) => {
      writeFileSync(join(folder, ".env"), "LEAKED=yes\n");
      writeFileSync(join(folder, "bunfig.toml"), 'preload = ["./planted.ts"]\n');
      writeFileSync(join(folder, "planted.ts"), "process.exit(1);\n");
      return {};
    },
  });
  assert.equal((await d.exec("echo leaked=$LEAKED")).json.stdout, "leaked=\n");
});

test("another user", { skip: skip || (process.getuid?.() !== 0 && "needs root to change the user") }, async () => {
  await using d = await startSandboxd({ config: { user: { uid: 65534, gid: 65534, home: "/tmp" } } });
  await d.exec("true");
  const { json } = await d.exec('id -u; id -g; echo "$HOME"', { workingDir: "/tmp" });
  assert.equal(json.stdout, "65534\n65534\n/tmp\n");
  await d.ask("PUT", "/filesystem/sub/f", { body: { content: "x" } });
  assert.deepEqual([statSync(join(d.workDir, "sub/f")).uid, statSync(join(d.workDir, "sub")).gid], [65534, 65534]);
  assert.equal((await d.ask("GET", "/filesystem/~")).json.path, "/tmp");
});

test("a user who does not exist runs nothing", { skip }, async () => {
  const env = { BL_SANDBOX_USER_ENABLED: "true", BL_SANDBOX_USER: "no-such-user" };
  await using d = await startSandboxd({ config: { env } });
  const { status, json } = await d.exec("id -u");
  assert.equal(status, 422);
  assert.match(json.error, /no user "no-such-user"/);
  assert.equal((await d.ask("PUT", "/filesystem/f", { body: { content: "x" } })).status, 422);
  assert.equal((await d.ask("GET", "/health")).status, 200);
});

test("output finds a place where the usual one cannot be written", { skip }, async () => {
  await using d = await startSandboxd({ config: { logDir: "/proc/no-such-place" } });
  assert.equal((await d.exec("echo kept")).json.stdout, "kept\n");
});

test("drives are the platform's business", { skip }, async () => {
  await using d = await startSandboxd({ config: (folder) => ({ drivesFile: join(folder, "drives.json") }) });
  writeFileSync(join(d.folder, "drives.json"), "[]");
  assert.deepEqual((await d.ask("GET", "/drives/mount")).json, { mounts: [] });
  const mount = { driveName: "d", mountPath: "/data", drivePath: "/", readOnly: false };
  writeFileSync(join(d.folder, "drives.json"), JSON.stringify([mount]));
  assert.deepEqual((await d.ask("GET", "/drives/mount")).json, { mounts: [mount] });
  for (const [method, path] of [
    ["POST", "/drives/mount"],
    ["DELETE", "/drives/mount/data"],
  ] as const) {
    const { status, json } = await d.ask(method, path, { body: { driveName: "d", mountPath: "/x" } });
    assert.deepEqual([status, /platform/.test(json.error)], [422, true]);
  }
});

test("the awake counter", { skip }, async () => {
  await using d = await startSandboxd({ config: (folder) => ({ awakeFifo: join(folder, "made/counter") }) });
  const fifo = d.config.awakeFifo;
  const awake = async () => (await d.ask("GET", "/activity", { socket: "control" })).json.awake;
  assert.equal(await awake(), 0);
  await d.exec(`printf + > ${fifo}; printf + > ${fifo}`);
  assert.equal(await awake(), 2);
  await d.exec(`printf - > ${fifo}`);
  assert.equal(await awake(), 1);
  await d.exec(`echo =0 > ${fifo}; printf -- --- > ${fifo}`);
  assert.equal(await awake(), 0);
});

test("code models", { skip }, async (t) => {
  const asked: { url: string; auth: string | undefined; body: ReturnType<typeof JSON.parse> }[] = [];
  let answer: unknown = {};
  const provider = createServer(async (req, res) => {
    let body = "";
    for await (const chunk of req) body += chunk;
    asked.push({ url: req.url ?? "", auth: req.headers.authorization, body: JSON.parse(body) });
    res.writeHead(answer === null ? 500 : 200, { "Content-Type": "application/json" });
    res.end(JSON.stringify(answer));
  }).listen(0, "127.0.0.1");
  await once(provider, "listening");
  const url = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`;
  t.after(() => provider.close());

  await t.test("none configured", async () => {
    await using d = await startSandboxd();
    const apply = await d.ask("PUT", "/codegen/fastapply/a.ts", { body: { codeEdit: "x" } });
    assert.deepEqual([apply.status, /RELACE_API_KEY/.test(apply.json.error)], [400, true]);
    assert.equal((await d.ask("GET", "/codegen/reranking/?query=x")).status, 400);
  });

  await t.test("a general model merges, and cannot rank", async () => {
    await using d = await startSandboxd({
      config: { env: { CODEGEN_API_URL: `${url}/v1/`, CODEGEN_API_KEY: "k", CODEGEN_MODEL: "m" } },
    });
    writeFileSync(join(d.workDir, "a.ts"), "old\n");
    answer = { choices: [{ message: { content: "\x60\x60\x60ts\nnew\n\x60\x60\x60" } }] };
    const { status, json } = await d.ask("PUT", "/codegen/fastapply/a.ts", { body: { codeEdit: "the edit" } });
    assert.equal(status, 200);
    assert.deepEqual(json, {
      success: true,
      path: join(d.workDir, "a.ts"),
      originalContent: "old\n",
      updatedContent: "new\n",
      provider: "openai-compatible",
      message: "The edit was applied.",
    });
    assert.equal(readFileSync(join(d.workDir, "a.ts"), "utf8"), "new\n");
    const last = asked.at(-1);
    assert.deepEqual([last?.url, last?.auth, last?.body.model], ["/v1/chat/completions", "Bearer k", "m"]);
    assert.match(last?.body.messages[1].content, /<code>old\n<\/code>\n<update>the edit<\/update>/);
    assert.equal((await d.ask("PUT", "/codegen/fastapply/a.ts", { body: {} })).status, 400);
    assert.equal((await d.ask("GET", "/codegen/reranking/?query=x")).status, 503);
    answer = null;
    assert.equal((await d.ask("PUT", "/codegen/fastapply/a.ts", { body: { codeEdit: "x" } })).status, 503);
    assert.equal(readFileSync(join(d.workDir, "a.ts"), "utf8"), "new\n");
    const tools = await d.ask("POST", "/mcp", { body: { jsonrpc: "2.0", id: 1, method: "tools/list" } });
    const names = tools.json.result.tools.map((tool: { name: string }) => tool.name);
    assert.ok(names.includes("codegenEditFile") && names.includes("codegenRerank"));
    answer = { choices: [{ message: { content: "edited by tool" } }] };
    const call = (name: string, args: unknown) =>
      d.ask("POST", "/mcp", {
        body: { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args } },
      });
    const edited = await call("codegenEditFile", { targetFile: "a.ts", instructions: "do", codeEdit: "e" });
    assert.deepEqual(edited.json.result.structuredContent, { filePath: join(d.workDir, "a.ts"), changesApplied: true });
    answer = { choices: [{ message: { content: "edited again" } }] };
    assert.equal((await call("codegenReapply", { targetFile: "a.ts" })).json.result.isError, false);
    assert.match(asked.at(-1)?.body.messages[1].content, /<code>new\n<\/code>/);
    assert.equal(readFileSync(join(d.workDir, "a.ts"), "utf8"), "edited again");
  });

  await t.test("a ranking provider ranks", async () => {
    for (const [env, path, reply] of [
      [
        { RELACE_API_KEY: "k", RELACE_RANKER_URL: `${url}/rank` },
        "/rank",
        {
          results: [
            { filename: "b.ts", score: 0.9 },
            { filename: "a.ts", score: 0.2 },
          ],
        },
      ],
      [
        { MORPH_API_KEY: "k", MORPH_RANKER_URL: `${url}/rerank` },
        "/rerank",
        {
          results: [
            { index: 0, relevance_score: 0.2 },
            { index: 1, relevance_score: 0.9 },
          ],
        },
      ],
    ] as const) {
      await using d = await startSandboxd({ config: { env } });
      writeFileSync(join(d.workDir, "a.ts"), "A");
      writeFileSync(join(d.workDir, "b.ts"), "B");
      writeFileSync(join(d.workDir, "c.md"), "C");
      answer = reply;
      const { json } = await d.ask("GET", "/codegen/reranking/?query=why&filePattern=*.ts");
      assert.deepEqual(json.files, [{ path: "b.ts", content: "B", score: 0.9 }]);
      assert.equal(json.success, true);
      assert.equal(asked.at(-1)?.url, path);
      assert.equal(
        (await d.ask("GET", "/codegen/reranking/?query=why&scoreThreshold=0.1&filePattern=*.ts")).json.files.length,
        2,
      );
      assert.equal((await d.ask("GET", "/codegen/reranking/")).status, 400);
    }
  });
});
