/** What workloads of this machine write can be read: through the API, by the command line, and after a crash. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { hostname } from "node:os";
import { createInterface } from "node:readline";
import { after, before, describe, test } from "node:test";
import { SEVERITY } from "../../src/contract/log-line.ts";
import { deploySuite, hasFailed, isDeployed } from "../deploy-suite.ts";
import { makeAccount, makeUser } from "../identities.ts";
import { machineSkip } from "../sandbox-suite.ts";

const talker = {
  "index.js": `
    const http = require("node:http");
    console.log("plain " + process.env.BL_NAME);
    console.error("Error: bad");
    console.log(JSON.stringify({ message: "structured", severity: "WARNING", trace_id: "abc", user: 7 }));
    process.on("SIGTERM", () => { console.log("last words"); process.exit(0); });
    http.createServer((request, response) => {
      const count = Number(new URL(request.url, "http://x").searchParams.get("lines"));
      for (let n = 0; n < count; n++) console.log("line " + n);
      response.end("{}");
    }).listen(process.env.PORT, process.env.HOST);`,
};

describe("logs of workloads on this machine", { skip: machineSkip }, () => {
  // A copy that is let go between two looks would say its lines again.
  const suite = deploySuite({ pool_size: "0", idle_after: "60" });
  const { call, ask, create, reaches, until } = suite;
  before(suite.start);
  after(suite.stop);

  interface Line {
    message: string;
    severity: number;
    timestamp: string;
    trace_id: string;
    type: string;
    revision?: string;
    task_id?: string;
    execution_id?: string;
    attributes?: object;
  }
  const logsOf = async (query: string): Promise<{ logs: Line[]; totalCount: number; server: string }> => {
    const { status, body } = await call("GET", `/observability/logs?${query}`);
    assert.equal(status, 200, JSON.stringify(body));
    const [log] = Object.values(body);
    return log as { logs: Line[]; totalCount: number; server: string };
  };
  const agent = "resourceType=agents&workloadIds=talker";

  test("an agent's output is there at once, with its severity", async () => {
    await create("talker", talker);
    await reaches("talker", isDeployed);
    const { logs, totalCount, server } = await until(
      () => logsOf(agent),
      (seen) => seen.totalCount >= 3,
    );
    assert.equal(totalCount, 3);
    assert.equal(server, hostname());
    const found = Object.fromEntries(logs.map((line) => [line.message, line]));
    assert.equal(found["plain talker"]?.severity, SEVERITY.INFO);
    assert.equal(found["Error: bad"]?.severity, SEVERITY.ERROR);
    const { severity, trace_id: trace, attributes, timestamp, type, revision } = found.structured ?? ({} as Line);
    assert.deepEqual([severity, trace, attributes], [SEVERITY.WARNING, "abc", { user: 7 }]);
    assert.deepEqual([type, revision], ["run", "1"]);
    assert.match(timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z$/);
  });

  test("questions are narrowed, and wrong ones refused by name", async () => {
    assert.equal((await logsOf(`${agent}&severity=error,FATAL`)).totalCount, 1);
    assert.equal((await logsOf(`${agent}&search=PLAIN`)).totalCount, 1);
    assert.equal((await logsOf(`${agent}&traceId=abc`)).totalCount, 1);
    assert.equal((await logsOf(`${agent}&type=build`)).totalCount, 0);
    assert.equal((await logsOf(`${agent}&limit=1&offset=1`)).logs.length, 1);
    assert.equal((await logsOf(`${agent}&end=2020-01-01T00:00:00`)).totalCount, 0);
    const { body } = await call("GET", "/agents/talker");
    const { body: byId } = await call(
      "GET",
      `/observability/logs?resourceType=agents&workloadIds=${body.metadata.id ?? "talker"}`,
    );
    assert.equal(Object.keys(byId).length, 1);
    assert.deepEqual(Object.keys((await call("GET", "/observability/logs?resourceType=agents")).body), ["talker"]);
    const wrong: [string, RegExp][] = [
      ["workloadIds=talker", /resourceType/],
      ["resourceType=boats", /resourceType/],
      [`${agent}&start=yesterday`, /start/],
      [`${agent}&start=2026-01-01T00:00:00&end=2026-01-05T00:00:00`, /3 days/],
      [`${agent}&start=2026-01-02T00:00:00&end=2026-01-01T00:00:00`, /after end/],
      [`${agent}&severity=LOUD`, /severity/],
      [`${agent}&limit=0`, /limit/],
    ];
    for (const [query, message] of wrong) {
      const answer = await call("GET", `/observability/logs?${query}`);
      assert.equal(answer.status, 400, query);
      assert.match(answer.body.message, message);
    }
  });

  test("another workspace sees nothing of it", async () => {
    const { store } = suite.platform().app;
    const other = await makeAccount(store, "logs-other");
    const stranger = await makeUser(store, other.id, "admin");
    const denied = await call("GET", `/observability/logs?${agent}`, { key: stranger.key, workspace: "main" });
    assert.equal(denied.status, 403);
    await call("POST", "/workspaces", { body: { name: "elsewhere" } });
    const { body } = await call("GET", `/observability/logs?${agent}`, { workspace: "elsewhere" });
    assert.deepEqual(body, { talker: { logs: [], totalCount: 0, server: hostname() } });
  });

  test("nothing is lost or told twice when the server starts anew, and the last words are kept", async () => {
    await ask("talker?lines=5");
    await suite.platform().stop();
    await suite.start();
    await ask("talker?lines=5");
    await call("DELETE", "/agents/talker");
    const { logs } = await logsOf(agent);
    assert.equal(logs[0]?.message, "last words");
    assert.equal(logs.filter(({ message }) => message === "line 4").length, 2);
    assert.equal(logs.filter(({ message }) => message.startsWith("plain")).length, 1);
  });

  test("the whole log of a build is kept under the name of what was built", async () => {
    const script =
      "for (let n = 0; n < 300; n++) console.log('step ' + n); console.error('no compiler'); process.exit(2)";
    await create("unmade", {
      "package.json": JSON.stringify({ scripts: { build: "node make.js", start: "node index.js" } }),
      "make.js": script,
    });
    await reaches("unmade", hasFailed);
    const { logs } = await logsOf("resourceType=agents&workloadIds=unmade&type=build");
    const said = logs.map(({ message }) => message);
    for (const expected of ["step 0", "step 299", "no compiler", "The build failed: exit code 2."])
      assert.ok(said.includes(expected), expected);
  });

  test("a task of a job writes with its execution and its own id", async () => {
    const runtime = { image: "service/base-image:latest", memory: 256, command: ["sh", "-c", "echo task $TASK_INDEX"] };
    await call("POST", "/jobs", { body: { metadata: { name: "batch" }, spec: { runtime } } });
    const started = await call("POST", "/jobs/batch/executions", { body: { tasks: [{}, {}] } });
    const id = started.body.executionId as string;
    await until(
      async () => (await call("GET", `/jobs/batch/executions/${id}`)).body,
      ({ status }) => status === "succeeded",
    );
    const job = `resourceType=jobs&workloadIds=batch&executionId=${id}`;
    assert.equal((await logsOf(job)).totalCount, 2);
    const [line] = (await logsOf(`${job}&taskId=1`)).logs;
    assert.deepEqual([line?.message, line?.execution_id, line?.task_id], ["task 1", id, "1"]);
    assert.equal((await logsOf(job.replace(id, "other"))).totalCount, 0);
    const { stdout } = await suite.berth(["logs", "job/batch", "--execution", id, "--task", "0"]);
    assert.match(stdout, /^\d{4}-\S+ INFO {4}\[0\] task 0\n$/);
  });

  test("berth logs shows them oldest first and follows", async () => {
    await create("steady", talker);
    await reaches("steady", isDeployed);
    await until(
      () => logsOf("resourceType=agents&workloadIds=steady"),
      (seen) => seen.totalCount >= 3,
    );
    const { stdout } = await suite.berth(["logs", "agent/steady", "--severity", "WARNING", "--plain"]);
    assert.equal(stdout, "structured\n");
    const { url, apiKey } = suite.platform();
    const env = { ...process.env, BERTH_URL: url, BERTH_API_KEY: apiKey, BERTH_WORKSPACE: "main" };
    const child = spawn(process.execPath, ["src/main.ts", "logs", "agent", "steady", "-f", "--plain"], { env });
    const heard: string[] = [];
    let asked = false;
    for await (const line of createInterface({ input: child.stdout })) {
      // A copy that was let go meanwhile has said the rest twice.
      if (line.startsWith("line")) heard.push(line);
      if (!asked) await ask("steady?lines=3");
      asked = true;
      if (line === "line 2") break;
    }
    child.kill();
    await once(child, "exit");
    assert.deepEqual(heard, ["line 0", "line 1", "line 2"]);
  });
});
