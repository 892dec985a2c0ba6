/** What a command says to do next has to be something that can be done. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { describeFailure } from "../../../src/cli/failure.ts";
import { ApiError } from "../../../src/client/api-error.ts";
import { type Ended, runBerth, spawnBerth } from "../../berth-process.ts";
import { startTestPlatform, TEST_KEY, type TestPlatform } from "../../platform.ts";

let platform: TestPlatform;
let folder: string;
let env: Record<string, string>;

before(async () => {
  platform = await startTestPlatform();
  folder = mkdtempSync(join(tmpdir(), "berth-first-steps-"));
  env = { BERTH_DATA: join(folder, "data"), BERTH_URL: platform.url, BERTH_API_KEY: TEST_KEY, BERTH_WORKSPACE: "main" };
});
after(async () => {
  await platform.stop();
  rmSync(folder, { recursive: true, force: true });
});

const berth = (...args: string[]): Promise<Ended> => runBerth(args, { env, cwd: folder });

test("a mistyped template is told with the one that was probably meant", async () => {
  const { code, stderr } = await berth("new", "agent-ehco");
  assert.equal(code, 3, stderr);
  assert.match(stderr, /no template 'agent-ehco'\. Did you mean agent-echo\? Known: .*sandbox-quickstart/);
});

test("a template that is not deployed is followed by the line that runs it", async () => {
  const { code, stderr } = await berth("new", "sandbox-quickstart", "my quick");
  assert.equal(code, 0, stderr);
  assert.equal(
    stderr,
    `next: cd 'my quick' && BL_API_URL=${platform.url}/v0 BL_WORKSPACE=main BL_API_KEY="$(berth token)" node index.js\n`,
  );
});

test("executions are listed with the id that addresses them, and go on after Ctrl-C", async () => {
  const runtime = { image: "fake/base-image:latest", memory: 256, command: ["sh", "-c", "sleep 600"] };
  const made = await platform.call("POST", "/jobs", { body: { metadata: { name: "held" }, spec: { runtime } } });
  assert.equal(made.status, 200, JSON.stringify(made.body));
  const waiting = spawnBerth(["run", "job", "held", "--wait"], { env });
  const [, id = ""] = await waiting.printed(/^(\S+)\n[\s\S]*0\/1/);
  waiting.child.kill("SIGINT");
  const ended = await waiting.ended;
  assert.equal(ended.code, 130, ended.stderr);
  assert.ok(ended.stderr.includes(`The execution goes on. Look with \`berth get job-execution held/${id}\``));

  assert.match((await berth("list", "job-execution", "held")).stdout, new RegExp(`^ID +.*STATUS.*\\n${id} `));
  assert.equal((await berth("list", "job-execution", "held", "-o", "name")).stdout, `${id}\n`);
  const shown = await berth("get", "job-execution", `held/${id}`, "-o", "json");
  assert.equal((JSON.parse(shown.stdout) as { metadata: { id: string } }).metadata.id, id);
  const removed = await berth("delete", "job-execution", `held/${id}`);
  assert.equal(removed.code, 0, removed.stderr);
});

test("whoever has to name a workspace is told how the command line does it", () => {
  const error = new ApiError({ status: 400, code: "workspace_required", message: "Send its name in the header." });
  assert.match(describeFailure(error), /which workspace\?[\s\S]*-w NAME[\s\S]*berth workspaces/);
});

test("the address tells browsers where the console is, and programs too", async () => {
  const look = (accept: string) => fetch(`${platform.url}/`, { headers: { accept }, redirect: "manual" });
  const page = await look("text/html,application/xhtml+xml,*/*;q=0.8");
  assert.equal(page.status, 200);
  assert.ok((await page.text()).includes(`href="${platform.app.pagesUrl}"`));
  for (const accept of ["*/*", "application/json"]) {
    const told = (await (await look(accept)).json()) as Record<string, string>;
    assert.equal(told.console, platform.app.pagesUrl);
    assert.equal(told.api, `${platform.url}/v0`);
  }
});
