/** From nothing to an answer by the command line alone, on this machine's own driver. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { deploySuite, hasFailed, says } from "../deploy-suite.ts";
import { machineSkip } from "../sandbox-suite.ts";

const tells = `
  const http = require("node:http");
  http.createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const { method, url, headers } = request;
    response.statusCode = url === "/bad" ? 418 : 200;
    response.end(JSON.stringify({ env: process.env, method, url, header: headers["x-mine"], body: Buffer.concat(chunks).toString() }));
  }).listen(process.env.PORT, process.env.HOST);`;

describe("the command line brings code to an answer", { skip: machineSkip }, () => {
  const suite = deploySuite({ idle_after: "60", pool_size: "0" });
  const { berth, call, ask } = suite;
  const folder = mkdtempSync(join(tmpdir(), "berth-cli-"));
  before(suite.start);
  after(async () => {
    rmSync(folder, { recursive: true, force: true });
    await suite.stop();
  });
  const write = (name: string, files: Record<string, string>): string => {
    for (const [path, content] of Object.entries(files)) {
      mkdirSync(join(folder, name, path, ".."), { recursive: true });
      writeFileSync(join(folder, name, path), content);
    }
    return join(folder, name);
  };
  const fails = (args: string[]): Promise<{ code: number; stderr: string; stdout: string }> =>
    berth(args).then(
      () => assert.fail(`${args.join(" ")} did not fail`),
      (error) => error,
    );

  test("new, deploy and run: a template answers", async () => {
    assert.match((await berth(["new"])).stdout, /agent-echo +agent +javascript/);
    const dir = join(folder, "My_Echo");
    await berth(["new", "agent-echo", dir]);
    assert.match(readFileSync(join(dir, "service.toml"), "utf8"), /^name = "my-echo"$/m);
    assert.match((await fails(["new", "agent-echo", dir])).stderr, /not empty/);
    const { stdout } = await berth(["deploy", dir]);
    assert.equal(stdout.trim(), `${suite.platform().url}/main/agents/my-echo`);
    const answer = await berth(["run", "agent", "my-echo", "--data", '{"inputs":"hello"}']);
    assert.deepEqual(JSON.parse(answer.stdout), { output: "You said: hello" });
  });

  test("a folder becomes a version of a volume template", async () => {
    const dir = write("seeds", {
      "berth.toml": 'name = "seeds"\ntype = "vt"\ndefaultSize = 32\ndirectory = "files"\n',
      "files/a.txt": "hello",
    });
    const { stdout } = await berth(["deploy", dir]);
    assert.equal(stdout.trim(), `${suite.platform().url}/v0/volume_templates/seeds`);
    await berth(["deploy", dir]);
    const { body } = await call("GET", "/volume_templates/seeds");
    assert.deepEqual([body.spec.defaultSize, body.state.latestVersion], [32, "2"]);
    assert.equal(body.versions[1].contentSize, 5);
  });

  test("the secret of a callback is told when it is made, and a revision goes by its number", async () => {
    const dir = write("called", {
      "index.js": says("one")["index.js"] ?? "",
      "berth.toml": `name = "called"
[runtime]
memory = 256
[[triggers]]
id = "later"
type = "http-async"
[triggers.configuration]
callbackUrl = "https://example.com/done"`,
    });
    const first = await berth(["deploy", dir]);
    const [, secret = ""] = /trigger 'later': callbacks are signed with (\S+);/.exec(first.stderr) ?? [];
    assert.match(secret, /^[\w-]{20,}$/);
    write("called", { "index.js": says("two")["index.js"] ?? "" });
    assert.doesNotMatch((await berth(["deploy", dir])).stderr, /signed with/);
    const { body } = await call("GET", "/agents/called");
    assert.match(body.spec.triggers[0].configuration.callbackSecret, /^\*+$/);
    const { data } = (await call<{ data: Record<string, string>[] }>("GET", "/audit?limit=200")).body;
    const lines = data.filter(({ target }) => target === "called").map(({ action, outcome }) => `${action} ${outcome}`);
    assert.ok(lines.includes("agentCreate ok") && lines.includes("agentUpdate ok"), lines.join());
    assert.deepEqual(
      lines.filter((line) => !line.endsWith(" ok")),
      [],
      "the first deployment is no failed replacement",
    );

    await berth(["agent", "update", "called", "--set", "spec.revision.traffic=50"]);
    write("called", { "index.js": says("three")["index.js"] ?? "" });
    const third = await berth(["deploy", dir]);
    const [, canary] = /^Revision (\d) takes 50 %; revision 2 is the active one\.$/m.exec(third.stderr) ?? [];
    const shared = (await call("GET", "/agents/called")).body.spec.revision;
    assert.deepEqual([shared.active, shared.canary, shared.canaryPercent, shared.traffic], ["2", canary, 50, 50]);
    assert.match((await berth(["deploy", dir, "--traffic", "100"])).stderr, /^Revision \d takes 100 %\.$/m);
    assert.match((await fails(["deploy", dir, "--traffic", "half"])).stderr, /--traffic half is not a share/);
    await berth(["agent", "update", "called", "--set", "spec.revision.active=1"]);
    const back = await suite.until(
      async () => (await ask("called")).text(),
      (said) => said.includes("one"),
    );
    assert.match(back, /one/);
  });

  test("code is told who it is and where, and its owner's variables and secrets", async () => {
    const dir = write("tells", {
      "index.js": tells,
      "berth.toml": 'name = "tells"\n[env]\nPLAIN = "$TZ"\nPORT = "1"\nBL_LOG_LEVEL = "debug"\n[runtime]\nmemory = 256',
      ".env": "FROM_FILE=yes\n",
    });
    await berth(["deploy", dir, "-s", "TOKEN=hush"]);
    const { env } = JSON.parse((await berth(["run", "agent", "tells"])).stdout) as { env: Record<string, string> };
    const expected = {
      ...{
        PLAIN: "UTC",
        FROM_FILE: "yes",
        TOKEN: "hush",
        HOST: "0.0.0.0",
        BL_CLOUD: "true",
        BL_LOG_LEVEL: "debug",
      },
      ...{ BL_WORKSPACE: "main", BL_NAME: "tells", BL_TYPE: "agent", BL_REGION: "local", BL_GENERATION: "mk3" },
      ...{
        BL_ENABLE_OPENTELEMETRY: "false",
        OTEL_SERVICE_NAME: "tells",
        OTEL_TRACES_EXPORTER: "none",
        DO_NOT_TRACK: "1",
      },
      ...{ OTEL_RESOURCE_ATTRIBUTES: "workload.id=tells,workload.type=agents,workspace=main" },
    };
    assert.deepEqual({ ...env, ...expected }, env);
    assert.notEqual(env.PORT, "1");
    assert.equal(env.BL_SERVER_PORT, env.PORT);
    assert.ok(env.BL_CLIENT_CREDENTIALS);
    const { body } = await call("GET", "/agents/tells");
    assert.ok(!JSON.stringify(body).includes("hush"));
  });

  test("run sends method, path, headers and a file, and ends with 1 when the answer is bad", async () => {
    writeFileSync(join(folder, "body.json"), '{"from":"file"}');
    const { stdout } = await berth([
      ...["run", "agent", "tells", "-X", "put", "--path", "/a//b?c=%20", "-H", "X-Mine: yes"],
      ...["--file", join(folder, "body.json")],
    ]);
    const { method, url, header, body } = JSON.parse(stdout) as Record<string, string>;
    assert.deepEqual([method, url, header, body], ["PUT", "/a//b?c=%20", "yes", '{"from":"file"}']);
    const bad = await fails(["run", "agent", "tells", "--path", "bad", "-i"]);
    assert.equal(bad.code, 1);
    assert.match(bad.stderr, /HTTP 418[\s\S]*it answered 418/);
    assert.match((await fails(["run", "agent", "nobody"])).stderr, /not|exist/i);
  });

  test("several of one folder, with resources beside them", async () => {
    const dir = write("several", {
      "berth.toml": 'skipRoot = true\n[agent.left]\npath = "left"\n[function.right]\npath = "right"',
      "left/index.js": says("left")["index.js"] ?? "",
      "right/index.js": says("right")["index.js"] ?? "",
      ".berth/drive.yaml": "kind: Drive\nmetadata:\n  name: beside\nspec: {}\n",
    });
    const { stdout } = await berth(["deploy", dir]);
    const { url } = suite.platform();
    assert.deepEqual(stdout.trim().split("\n").slice(-2), [`${url}/main/agents/left`, `${url}/main/functions/right`]);
    assert.equal((await call("GET", "/drives/beside")).status, 200);
    assert.equal(JSON.parse((await berth(["run", "function", "right", "--path", "/"])).stdout).word, "right");
  });

  test("--skip-build changes the settings and keeps the code", async () => {
    const dir = join(folder, "tells");
    writeFileSync(join(dir, "index.js"), "process.exit(1)");
    writeFileSync(join(dir, "berth.toml"), 'name = "tells"\n[env]\nPLAIN = "changed"\n[runtime]\nmemory = 256');
    await berth(["deploy", dir, "--skip-build"]);
    assert.equal(JSON.parse((await berth(["run", "agent", "tells"])).stdout).env.PLAIN, "changed");
  });

  test("a failed build ends with 1 and shows what it wrote", async () => {
    const dir = write("broken", {
      "package.json": JSON.stringify({ scripts: { build: "node make.js", start: "node x.js" } }),
      "make.js": 'console.log("looking for a compiler"); process.exit(2)',
    });
    const { code, stderr } = await fails(["deploy", dir]);
    assert.equal(code, 1);
    assert.match(stderr, /looking for a compiler[\s\S]*failed: The build failed: exit code 2/);
    await suite.reaches("broken", hasFailed);
  });

  test("whoever calls an agent without code is told at once", async () => {
    await call("POST", "/agents", { body: { metadata: { name: "hollow" }, spec: {} } });
    const hollow = await ask("hollow");
    assert.ok(hollow.status >= 500, String(hollow.status));
    assert.match(await hollow.text(), /Nothing to run yet/);
    await call("POST", "/agents?upload=true", { body: { metadata: { name: "expected" }, spec: {} } });
    assert.match(await (await ask("expected")).text(), /code has not been sent/);
  });
});
