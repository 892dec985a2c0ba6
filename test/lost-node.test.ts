/** A node is drained, lost and comes back: its workloads move or wait, and nothing is made anew in silence. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { testDatabases } from "./databases.ts";
import { type FakeMachine, fakeDriver } from "./fake-driver.ts";
import { startTestPlatform, TEST_KEY, type TestPlatform } from "./platform.ts";
import { AGENT_IMAGE, type AgentWorld, agentMachine, agentWorld, until } from "./triggers/agent-world.ts";

const databases = await testDatabases();
after(() => databases.stop());
const postgres = databases.all.find(({ name }) => name === "postgres") ?? assert.fail();

interface Shown {
  state?: string;
  status: string;
  metadata: { uid: string };
  events: { type: string; message: string }[];
}

describe("a drained node, which is lost later", { skip: postgres.skip }, () => {
  const dataDir = mkdtempSync(join(tmpdir(), "berth-lost-"));
  let world: AgentWorld;
  /** The machine of the node that stays, and that of the node that is lost. */
  let stays: FakeMachine;
  let goes: FakeMachine;
  let one: TestPlatform;
  let two: TestPlatform | null = null;
  let startTwo: () => Promise<TestPlatform>;
  const box = {} as Record<string, string>;

  const shown = async (path: string): Promise<Shown> => (await one.call<Shown>("GET", path)).body;
  const lastEvent = ({ events }: Shown, type: string): string =>
    events.findLast((event) => event.type === type)?.message ?? "";

  before(async () => {
    world = await agentWorld();
    [stays, goes] = [agentMachine(world.agentPort), agentMachine(world.agentPort)];
    const { databaseUrl } = await postgres.migrated();
    const config = {
      secret_key: "one key for all servers of one database",
      node_lost_after: "10",
      node_full_at: "100",
    };
    one = await startTestPlatform({
      databaseUrl,
      config: { ...config, node_name: "left" },
      driver: fakeDriver(stays),
    });
    startTwo = () =>
      startTestPlatform({
        databaseUrl,
        config: { ...config, node_name: "right" },
        driver: fakeDriver(goes),
        dataDir,
      });
    two = await startTwo();
  });
  after(async () => {
    await two?.stop();
    await one.stop();
    for (const machine of [stays, goes]) await machine.dispose();
    await world[Symbol.asyncDispose]();
    rmSync(dataDir, { recursive: true, force: true, maxRetries: 10 });
  });

  const make = async (path: string, name: string, spec: object): Promise<string> => {
    const { status, body } = await (two ?? assert.fail()).call("POST", path, { body: { metadata: { name }, spec } });
    assert.equal(status, 200, JSON.stringify(body));
    return body.metadata.uid;
  };

  test("a drain moves an agent, whose last request ends where it began; sandboxes stay and are named", async (t) => {
    const right = two ?? assert.fail();
    const kept = await make("/sandboxes", "stays", { lifecycle: { onNodeLoss: "recreate" } });
    await make("/agents", "served", { runtime: { image: AGENT_IMAGE, memory: 128, minScale: 1 } });
    await until("the agent runs", async () => (await shown("/agents/served")).status === "DEPLOYED");
    const [copy = ""] = [...goes.workloads.keys()].filter((uid) => uid !== kept);
    world.gate.shut();
    t.after(() => world.gate.open());
    const ask = async (body: string): Promise<string> => {
      const headers = { authorization: `Bearer ${TEST_KEY}` };
      const answer = await fetch(`${right.url}/main/agents/served`, { method: "POST", headers, body });
      return `${answer.status} ${await answer.text()}`;
    };
    const early = ask("early");
    await until("the request is with the agent", () => world.requests.some(({ body }) => body === "early"));

    const drained = (await one.call("POST", "/nodes/right/drain")).body;
    assert.deepEqual(
      [drained.drained, drained.moves, drained.staysCount, drained.stays],
      [true, 1, 1, [{ kind: "sandbox", workspace: "main", name: "stays" }]],
    );
    await until("the agent runs there", () => stays.workloads.size === 1);
    assert.match(lastEvent(await shown("/agents/served"), "moved"), /Node right is drained. It goes on at node left/);
    const notes = (): Promise<string[]> => one.app.store.records.list(`leftover/${drained.id}/`);
    await until("the drained node has looked for leftovers", async () => (await notes()).length === 1);
    assert.equal(goes.workloads.has(copy), true, "the copy has a request");
    const late = ask("late");
    const began: string[] = [];
    goes.options.failCreate = ({ uid }) => void began.push(uid);
    await make("/jobs", "work", { runtime: { image: AGENT_IMAGE, memory: 128, command: ["true"] } });
    const { executionId } = (await right.call("POST", "/jobs/work/executions", { body: { tasks: [{}, {}, {}] } })).body;
    const execution = `/jobs/work/executions/${executionId}`;
    await until("tasks run", async () => (await right.call("GET", execution)).body.stats.success === 3);
    assert.deepEqual(began, [], "a drained node starts no tasks");
    world.gate.open();
    assert.deepEqual(await Promise.all([early, late]), ["200 seen early", "200 seen late"]);
    await until("the copy is ended", () => !goes.workloads.has(copy));
    assert.equal(goes.workloads.has(kept), true);
    assert.equal((await one.call("POST", "/nodes/right/undrain")).body.drained, false);
    for (const path of ["/agents/served", "/sandboxes/stays", "/jobs/work"])
      assert.equal((await one.call("DELETE", path)).status, 200);
    await until("both machines are empty", () => stays.workloads.size + goes.workloads.size === 0);
  });

  test("workloads of a lost node move or wait, and say so", async () => {
    box.waits = await make("/sandboxes", "waits", {});
    box.leaves = await make("/sandboxes", "leaves", {});
    box.anew = await make("/sandboxes", "anew", { lifecycle: { onNodeLoss: "recreate" } });
    box.agent = await make("/agents", "agent", { runtime: { image: AGENT_IMAGE, memory: 128, minScale: 1 } });
    writeFileSync(join(goes.rootOf(box.waits), "work"), "a day of it");
    await until("the agent runs", async () => (await shown("/agents/agent")).status === "DEPLOYED");
    assert.equal(stays.workloads.size, 0);

    await two?.stop();
    two = null;
    await until("a sandbox waits", async () => (await shown("/sandboxes/waits")).status === "DEACTIVATED");
    assert.match(lastEvent(await shown("/sandboxes/waits"), "node-lost"), /^Node right is not heard of/);
    assert.equal((await shown("/sandboxes/waits")).state, undefined);
    await until("a sandbox that may is made anew", () => stays.workloads.has(box.anew ?? ""));
    assert.match(lastEvent(await shown("/sandboxes/anew"), "moved"), /Node right is lost.* node left\. Kept: nothing/);
    await until("the agent runs there", () => stays.workloads.size === 2);
    assert.match(lastEvent(await shown("/agents/agent"), "moved"), /Node right is lost. It goes on at node left/);
    assert.equal(stays.workloads.has(box.waits ?? ""), false, "nothing is made anew in silence");
  });

  test("a delete is taken at once, although its node is away", async () => {
    assert.equal((await one.call("DELETE", "/sandboxes/leaves")).status, 200);
    assert.equal((await shown("/sandboxes/leaves")).status, "DELETING");
    assert.equal(goes.workloads.has(box.leaves ?? ""), true);
  });

  test("it returns: what waited runs on, what moved is ended there", async () => {
    two = await startTwo();
    await until("the sandbox runs on", async () => (await shown("/sandboxes/waits")).status === "DEPLOYED");
    assert.match(lastEvent(await shown("/sandboxes/waits"), "node-returned"), /Node right is back, and it runs on/);
    assert.equal(readFileSync(join(goes.rootOf(box.waits ?? ""), "work"), "utf8"), "a day of it");
    await until("what moved or was deleted is ended", () => [...goes.workloads.keys()].join() === box.waits);
    await until("the deleted one is over", async () => (await shown("/sandboxes/leaves")).status === "TERMINATED");
    assert.equal(stays.workloads.size, 2, "the node that took them over keeps them");
  });

  test("a node that never returns is removed by force, and what it had is given up", async () => {
    await two?.stop();
    two = null;
    const isLost = async () => (await one.call("GET", "/nodes/right")).body.status === "lost";
    await until("the node is lost", isLost);
    const refused = await one.call("DELETE", "/nodes/right");
    assert.equal(refused.status, 409);
    assert.match(refused.body.message, /Node right has sandbox 'waits'\. .* by force/);
    assert.equal((await one.call("DELETE", "/nodes/right?force=true")).status, 200);
    await until("it is over", async () => (await shown("/sandboxes/waits")).status === "TERMINATED");
    assert.match(lastEvent(await shown("/sandboxes/waits"), "given-up"), /Node right was removed by .* files .* lost/);
    const { body: nodes } = await one.call("GET", "/nodes");
    assert.deepEqual(
      nodes.map(({ name }: { name: string }) => name),
      ["left"],
    );
  });
});
