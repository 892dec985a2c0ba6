/** A real server whose workloads are containers of a real Docker Engine. */
import assert from "node:assert/strict";
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { DockerClient } from "../../src/node/drivers/docker/engine/docker-client.ts";
import { parseDockerHost } from "../../src/node/drivers/docker/engine/docker-host.ts";
import { importBase } from "../../src/node/drivers/docker/images/base-image.ts";
import { openSkeleton } from "../../src/node/drivers/local/images/base-image.ts";
import { runBerth } from "../berth-process.ts";
import { says } from "../deploy-suite.ts";
import { type Answer, TEST_KEY } from "../platform.ts";
import { projectArchive } from "../project-archive.ts";
import { type ServerProcess, startServer } from "../server-process.ts";
import { type Bench, dockerMissing, openBench } from "./machine.ts";

/** Far longer than anything here takes: a test that waits in vain fails. */
const PATIENCE_MS = 240_000;
const LOOK_MS = 50;

describe("a server with driver docker", { skip: dockerMissing ?? false }, () => {
  const dataDir = mkdtempSync(join(tmpdir(), "berth-docker-server-"));
  let bench: Bench;
  let server: ServerProcess;
  let env: Record<string, string>;

  before(async () => {
    bench = await openBench(realpathSync(process.execPath));
    const client = new DockerClient(parseDockerHost(bench.engine.host));
    await client.open();
    const skeleton = openSkeleton(join(dataDir, "skeleton"), "");
    const image = await importBase({ client, owner: "test-00000000", brand: "test", base: bench.base, skeleton });
    await client.close();
    env = {
      BERTH_DRIVER: "docker",
      DOCKER_HOST: bench.engine.host,
      BERTH_DOCKER_IMAGE: image,
      BERTH_STANDBY_AFTER: "2",
      BERTH_IDLE_AFTER: "600",
    };
    server = await startServer({ dataDir, env });
  });
  after(async () => {
    await server?.kill("SIGKILL").catch(() => {});
    await bench?.stop();
    rmSync(dataDir, { recursive: true, force: true, maxRetries: 10 });
  });

  const call = async (method: string, path: string, body?: unknown): Promise<Answer> => {
    const answer = await fetch(`${server.url}${path}`, {
      method,
      headers: { authorization: `Bearer ${TEST_KEY}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    return { status: answer.status, headers: answer.headers, body: text === "" ? null : JSON.parse(text) };
  };
  const until = async <T>(look: () => Promise<T>, done: (seen: T) => boolean): Promise<T> => {
    const giveUp = Date.now() + PATIENCE_MS;
    for (;;) {
      const seen = await look();
      if (done(seen)) return seen;
      if (Date.now() > giveUp) throw new Error(`still ${JSON.stringify(seen)}`);
      await delay(LOOK_MS);
    }
  };
  const run = async (command: string): Promise<string> => {
    const body = { command, waitForCompletion: true };
    const { status, body: answer } = await call("POST", "/main/sandboxes/box/process", body);
    assert.equal(status, 200, JSON.stringify(answer));
    return answer.logs;
  };
  /** Ids and states of the running containers. */
  const running = async (): Promise<{ Id: string; State: string }[]> =>
    JSON.parse(await bench.engine.call("GET", "/containers/json"));

  test("a sandbox is a container that runs commands, sleeps, and survives the end of its server", async () => {
    const made = await call("POST", "/v0/sandboxes", { metadata: { name: "box" }, spec: { runtime: { memory: 512 } } });
    assert.equal(made.status, 200, JSON.stringify(made.body));
    await until(
      async () => (await call("GET", "/v0/sandboxes/box")).body,
      ({ status }) => status === "DEPLOYED",
    );
    assert.equal(await run("echo kept > /root/file; cat /root/file; ls /sys/class/net"), "kept\nlo\n");
    const [before] = await until(running, ([only]) => only?.State === "paused");
    assert.equal(await run("cat /root/file"), "kept\n", "a request wakes the sandbox");

    await server.kill("SIGKILL");
    assert.deepEqual(
      (await running()).map(({ Id }) => Id),
      [before?.Id],
    );
    server = await startServer({ dataDir, env });
    assert.equal(await run("cat /root/file"), "kept\n");
    assert.deepEqual(
      (await running()).map(({ Id }) => Id),
      [before?.Id],
      "the next server takes the same container over",
    );
    assert.equal((await call("DELETE", "/v0/sandboxes/box")).status, 200);
    await until(bench.engine.containers, (all) => all.length === 0);
  });

  test("code that was sent becomes an agent that answers, and a job's tasks run", async () => {
    const body = { metadata: { name: "word" }, spec: { runtime: { memory: 512 } } };
    const made = await call("POST", "/v0/agents?upload=true", body);
    assert.equal(made.status, 200, JSON.stringify(made.body));
    const sent = await fetch(made.headers.get("x-service-upload-url") ?? "", {
      method: "PUT",
      body: projectArchive(says("hello")),
      headers: { "content-type": "application/gzip" },
    });
    assert.equal(sent.status, 200);
    const deployed = await until(
      async () => (await call("GET", "/v0/agents/word")).body,
      ({ status }) => status === "DEPLOYED" || status === "FAILED",
    );
    assert.equal(deployed.status, "DEPLOYED", JSON.stringify(deployed.events));
    assert.equal((await call("POST", "/main/agents/word", {})).body.word, "hello");
    assert.equal((await call("DELETE", "/v0/agents/word")).status, 200);

    const script = `
      const { tasks } = await (await fetch(process.env.BL_EXECUTION_DATA_URL)).json();
      process.exit(tasks[process.env[process.env.BL_TASK_KEY]].code);`;
    const runtime = { image: "base-image", memory: 256, command: ["node", "--input-type=module", "-e", script] };
    assert.equal((await call("POST", "/v0/jobs", { metadata: { name: "job" }, spec: { runtime } })).status, 200);
    const begun = await call("POST", "/v0/jobs/job/executions", { tasks: [{ code: 0 }, { code: 4 }] });
    assert.equal(begun.status, 200, JSON.stringify(begun.body));
    const ended = await until(
      async () => (await call("GET", `/v0/jobs/job/executions/${begun.body.executionId}`)).body,
      ({ metadata }) => metadata.completedAt !== undefined,
    );
    assert.deepEqual([ended.stats.success, ended.stats.failure], [1, 1], JSON.stringify(ended));
    await until(bench.engine.containers, (all) => all.length === 0);
  });

  test("`berth down` ends the containers and leaves their files, which `--purge` removes", async () => {
    const made = await call("POST", "/v0/sandboxes", {
      metadata: { name: "last" },
      spec: { runtime: { memory: 512 } },
    });
    assert.equal(made.status, 200, JSON.stringify(made.body));
    await until(running, ({ length }) => length === 1);
    const down = await runBerth(["down"], { env: { ...env, BERTH_DATA: dataDir } });
    assert.equal(down.code, 0, down.stderr);
    assert.match(down.stderr, /Files of sandboxes stay.*1 sandbox: main\/last/s);
    assert.equal((await bench.engine.containers()).length, 1);
    const purge = await runBerth(["down", "--purge", "--yes"], { env: { ...env, BERTH_DATA: dataDir } });
    assert.equal(purge.code, 0, purge.stderr);
    assert.match(purge.stdout, /removed the files of 1 workload/);
    assert.deepEqual(await bench.engine.containers(), []);
  });
});
