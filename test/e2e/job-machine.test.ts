/** Jobs on this machine's own driver: isolated tasks that read their arguments through the platform's door. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { runBerth } from "../berth-process.ts";
import { sizesMissing } from "../local/machine.ts";
import type { Answer, TestPlatform } from "../platform.ts";
import { projectArchive } from "../project-archive.ts";
import { machineSkip, sandboxSuite } from "../sandbox-suite.ts";

/** Far longer than anything here takes: a test that waits in vain fails. */
const TRIES = 1800;

describe("a job on this machine", { skip: machineSkip }, () => {
  const suite = sandboxSuite();
  let platform: TestPlatform;
  before(async () => {
    await suite.start({ pool_size: "0", job_slots: "4" });
    platform = suite.platform();
  });
  after(() => suite.stop());

  const ended = async (job: string, id: string): Promise<Answer["body"]> => {
    for (let tries = 0; tries < TRIES; tries += 1) {
      const { body } = await platform.call("GET", `/jobs/${job}/executions/${id}?inlineTasks=true`);
      if (body.metadata.completedAt) return body;
      await delay(50);
    }
    throw new Error("the execution did not end");
  };
  const runJob = async (name: string, runtime: object, tasks: object[], spec: object = {}): Promise<Answer["body"]> => {
    const image = "service/base-image:latest";
    const made = await platform.call("POST", "/jobs", {
      body: { metadata: { name }, spec: { ...spec, runtime: { image, memory: 256, ...runtime } } },
    });
    assert.equal(made.status, 200, JSON.stringify(made.body));
    const started = await platform.call("POST", `/jobs/${name}/executions`, { body: { tasks } });
    assert.equal(started.status, 200, JSON.stringify(started.body));
    return ended(name, started.body.executionId);
  };

  test("a task reads its own arguments", async () => {
    const script = `
      const { tasks } = await (await fetch(process.env.BL_EXECUTION_DATA_URL)).json();
      const mine = tasks[process.env[process.env.BL_TASK_KEY]];
      console.error("got " + JSON.stringify(mine));
      process.exit(mine.code);`;
    const command = ["node", "--input-type=module", "-e", script];
    const execution = await runJob("reader", { command }, [{ code: 0 }, { code: 4 }]);
    assert.deepEqual([execution.status, execution.stats.success, execution.stats.failure], ["failed", 1, 1]);
    assert.match(execution.tasks[1].conditions[0].message, /exit code 4\. Its last words: got \{"code":4\}/);
  });

  test("a task has the outbound rules of its job from its first moment on", async () => {
    const ask =
      "exec 3<>/dev/tcp/127.0.0.1/988; printf 'CONNECT bad.test:443 HTTP/1.1\\r\\n\\r\\n' >&3; cat <&3 >&2; exit 3";
    const network = { proxy: { forbiddenDomains: ["bad.test"] } };
    const { tasks } = await runJob("ruled", { command: ["bash", "-c", ask] }, [{}, {}], { network });
    for (const task of tasks)
      assert.match(task.conditions[0].message, /bad\.test is refused by spec\.network\.proxy\.forbiddenDomains\[0\]/);
  });

  test("code that was sent is built and run, with its arguments behind it", async () => {
    const made = await platform.call("POST", "/jobs?upload=true", {
      body: { metadata: { name: "sent" }, spec: { runtime: { memory: 256 } } },
    });
    assert.equal(made.body.status, "UPLOADING", JSON.stringify(made.body));
    const early = await platform.call("POST", "/jobs/sent/executions", { body: { tasks: [{}] } });
    assert.equal(early.status, 409);
    const files = {
      "package.json": JSON.stringify({ scripts: { build: "cp source.mjs built.mjs", start: "node built.mjs" } }),
      "source.mjs": `
        const { tasks } = await (await fetch(process.env.BL_EXECUTION_DATA_URL)).json();
        console.error(JSON.stringify([process.argv.slice(2), tasks[process.env.TASK_INDEX], process.cwd()]));
        process.exit(5);`,
    };
    const url = made.headers.get("x-service-upload-url") ?? "";
    assert.equal((await fetch(url, { method: "PUT", body: projectArchive(files) })).status, 200);
    for (let status = ""; status !== "DEPLOYED"; await delay(50)) {
      const { body } = await platform.call("GET", "/jobs/sent");
      assert.notEqual(body.status, "FAILED", JSON.stringify(body.events));
      status = body.status;
    }
    const tasks = [{ page: 7, name: "it's", deep: { a: 1 }, flag: true }];
    const started = await platform.call("POST", "/jobs/sent/executions", { body: { tasks } });
    const execution = await ended("sent", started.body.executionId);
    const said = execution.tasks[0].conditions[0].message.split("Its last words: ")[1];
    const argv = ["--page", "7", "--name", "it's", "--deep", '{"a":1}', "--flag", "true"];
    assert.deepEqual(JSON.parse(said ?? ""), [argv, tasks[0], "/app"]);
  });

  test("berth run job --wait shows how far it is, and how it ended", async () => {
    const env = { BERTH_URL: platform.url, BERTH_API_KEY: platform.apiKey };
    const body = (code: number): string => JSON.stringify({ tasks: [{ code: 0 }, { code }] });
    const well = await runBerth(["run", "job", "reader", "--wait", "--data", body(0)], { env });
    assert.equal(well.code, 0, well.stderr);
    assert.match(well.stderr, /\[#{30}\] 2\/2 succeeded$/m);
    const badly = await runBerth(["run", "job", "reader", "--wait", "--data", body(3)], { env });
    assert.equal(badly.code, 1);
    assert.match(badly.stderr, /2\/2 failed, 1 failed$/m);
    assert.equal((await ended("reader", badly.stdout.trim())).stats.failure, 1);
  });

  test("a scratch disk is there and has its size", { skip: sizesMissing }, async () => {
    const command = [
      "sh",
      "-c",
      "dd if=/dev/zero of=/scratch/big bs=1M count=64 2>/dev/null && exit 9; test -e /scratch/big",
    ];
    const volumes = [{ name: "scratch", mountPath: "/scratch", sizeMb: 16, type: "ephemeral" }];
    const execution = await runJob("scratch", { command }, [{}], { volumes });
    assert.equal(execution.status, "succeeded", JSON.stringify(execution.tasks));
  });

  test("a task that takes too long is told to end", async () => {
    const execution = await runJob("slow", { command: ["sleep", "600"], timeout: 1 }, [{}]);
    assert.equal(execution.status, "timeout");
  });

  test("an image that is not there fails the task and says so", async () => {
    const execution = await runJob("imageless", { image: "no/such:image" }, [{}]);
    assert.equal(execution.tasks[0].conditions[0].reason, "StartFailed");
  });
});
