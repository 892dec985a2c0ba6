/** `berth apply` says what is so: all or nothing with --strict, the server's own word in a dry run, a clean audit log. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type Ended, runBerth } from "../../berth-process.ts";
import { startTestPlatform, TEST_KEY, type TestPlatform } from "../../platform.ts";

let platform: TestPlatform;
before(async () => {
  platform = await startTestPlatform();
});
after(() => platform.stop());

const berth = (args: string, input: string): Promise<Ended> =>
  runBerth(args.split(" "), { input, env: { BERTH_URL: platform.url, BERTH_API_KEY: TEST_KEY } });

const linesOf = async (target: string): Promise<string[]> => {
  const { body } = await platform.call("GET", "/audit?limit=200");
  return body.data.filter((line) => line.target === target).map(({ action, outcome }) => `${action} ${outcome}`);
};

const drive = (name: string, team = "red"): string =>
  `kind: Drive\nmetadata: {name: ${name}, labels: {team: ${team}}}\nspec: {}\n`;
const policy = (name: string): string =>
  `kind: Policy\nmetadata: {name: ${name}}\nspec: {type: location, locations: [{type: location, name: local}]}\n`;
const agent = (name: string, policyName: string): string =>
  `kind: Agent\nmetadata: {name: ${name}}\nspec: {policies: [${policyName}]}\n`;
const file = (...documents: string[]): string => documents.join("---\n");

describe("apply --strict", () => {
  test("applies no document when one is wrong, and names each wrong one", async () => {
    const wrong = "kind: Drive\nmetadata: {name: second}\nspec: {sise: 5}\n";
    const lost = "kind: Preview\nmetadata: {name: lost}\nspec: {port: 1}\n";
    const ended = await berth("apply -f - --strict", file(drive("first"), wrong, lost));
    assert.equal(ended.code, 2, ended.stderr);
    assert.match(ended.stderr, /drive 'second' failed.*spec\.sise.*preview 'lost' failed.*nothing was applied/s);
    assert.equal(ended.stdout, "");
    assert.equal((await platform.call("GET", "/drives/first")).status, 404);
  });
});

describe("apply --dry-run", () => {
  const trial = (input: string, verb = "apply"): Promise<Ended> => berth(`${verb} -f - --dry-run`, input);

  test("tells what is new, changed and unchanged", async () => {
    await berth("apply -f -", file(drive("same"), drive("other")));
    const before = (await platform.call("GET", "/drives/other")).body;
    const ended = await trial(file(drive("same"), drive("other", "blue"), drive("new")));
    assert.equal(
      ended.stdout,
      "drive 'same' unchanged\ndrive 'other' would be configured\ndrive 'new' would be created\n",
    );
    assert.equal(ended.code, 0, ended.stderr);
    assert.deepEqual((await platform.call("GET", "/drives/other")).body, before);
    assert.equal((await platform.call("GET", "/drives/new")).status, 404);
    assert.deepEqual(await linesOf("new"), []);
    assert.deepEqual(await linesOf("other"), ["driveCreate ok"]);
  });

  test("is refused where the server would refuse", async () => {
    const ended = await trial(file(agent("lonely", "nowhere"), drive("fine")));
    assert.equal(ended.stdout, "drive 'fine' would be created\n");
    assert.match(ended.stderr, /agent 'lonely' failed\n.*policy 'nowhere' does not exist/);
    assert.notEqual(ended.code, 0);
    await berth("apply -f -", "kind: Volume\nmetadata: {name: fixed}\nspec: {size: 64}\n");
    const smaller = await trial("kind: Volume\nmetadata: {name: fixed}\nspec: {size: 32}\n");
    assert.match(smaller.stderr, /volume 'fixed' failed\n.*spec\.size/);
  });

  test("counts on what the documents before would create", async () => {
    const preview = "kind: Preview\nmetadata: {name: web, resourceName: box}\nspec: {port: 3000}\n";
    const sandbox = "kind: Sandbox\nmetadata: {name: box}\nspec: {}\n";
    const ended = await trial(file(policy("here"), agent("placed", "here"), sandbox, preview));
    assert.equal(ended.code, 0, ended.stderr);
    assert.equal((ended.stdout.match(/would be created/g) ?? []).length, 4, ended.stdout);
    for (const path of ["/policies/here", "/agents/placed", "/sandboxes/box"])
      assert.equal((await platform.call("GET", path)).status, 404, path);
  });

  test("of a deletion says what is in use and what is not there", async () => {
    await berth("apply -f -", file(policy("used"), agent("user", "used")));
    const ended = await trial(file(policy("used"), drive("nobody")), "delete");
    assert.equal(ended.stdout, "drive 'nobody' not there\n");
    assert.match(ended.stderr, /policy 'used' failed\n.*in use by agent 'user'/);
    assert.equal((await trial(agent("user", "used"), "delete")).stdout, "agent 'user' would be deleted\n");
    assert.equal((await platform.call("GET", "/agents/user")).status, 200);
  });

  test("of a deleted one says that it would be created", async () => {
    await berth("apply -f -", drive("brief"));
    await platform.call("DELETE", "/drives/brief");
    assert.equal((await trial(drive("brief"))).stdout, "drive 'brief' would be created\n");
  });

  test("by the API is in no audit log and holds no idempotency key", async () => {
    const body = { metadata: { name: "keyed" }, spec: {} };
    const headers = { "idempotency-key": "k-1" };
    const first = await platform.call("POST", "/drives?dryRun=true", { body, headers });
    assert.equal(first.status, 200, JSON.stringify(first.body));
    assert.equal(first.body.metadata.name, "keyed");
    assert.equal((await platform.call("GET", "/drives/keyed")).status, 404);
    assert.deepEqual(await linesOf("keyed"), []);
    assert.equal((await platform.call("POST", "/drives", { body, headers })).status, 200);
    assert.deepEqual(await linesOf("keyed"), ["driveCreate ok"]);
    const refused = await platform.call("POST", "/service_accounts?dryRun=true", { body: { name: "rehearsed" } });
    assert.equal(refused.status, 400, "an operation that cannot be rehearsed is not done");
  });
});

test("an apply that creates leaves nothing failed in the audit log", async () => {
  const vpc = "kind: VPC\nmetadata: {name: net}\nspec: {}\n";
  await berth("apply -f -", file(drive("clean"), vpc));
  await berth("apply -f -", file(drive("clean", "blue"), vpc));
  assert.deepEqual((await linesOf("clean")).sort(), ["driveCreate ok", "driveUpdate ok"]);
  assert.deepEqual((await linesOf("net")).sort(), ["vpcCreate ok", "vpcUpdate ok"]);
});
