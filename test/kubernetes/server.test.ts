/** A real server process whose workloads are pods of a cluster of the test's own. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { freePort } from "../free-port.ts";
import { type Answer, TEST_KEY } from "../platform.ts";
import { type ServerProcess, startServer } from "../server-process.ts";
import { BASE_IMAGE, BERTH_IMAGE, type Cluster, kubernetesMissing, startCluster } from "./cluster.ts";
import { NAMESPACE } from "./kubelet.ts";

/** Far longer than anything here takes: a test that waits in vain fails. */
const PATIENCE_MS = 240_000;
const LOOK_MS = 50;

describe("a server with driver kubernetes", { skip: kubernetesMissing ?? false }, () => {
  const dataDir = mkdtempSync(join(tmpdir(), "berth-kube-server-"));
  let cluster: Cluster;
  let server: ServerProcess;
  let env: Record<string, string>;

  before(async () => {
    cluster = await startCluster();
    const port = String(await freePort());
    env = {
      BERTH_DRIVER: "kubernetes",
      KUBECONFIG: cluster.kubeconfig,
      BERTH_KUBE_NAMESPACE: NAMESPACE,
      BERTH_KUBE_IMAGE: BERTH_IMAGE,
      BERTH_KUBE_BASE_IMAGE: BASE_IMAGE,
      BERTH_KUBE_DOORS: `127.0.0.1:${port}`,
      BERTH_KUBE_DOOR_PORT: port,
    };
    server = await startServer({ dataDir, env });
  });
  after(async () => {
    await server?.kill("SIGKILL").catch(() => {});
    await cluster?.stop();
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
  const until = async <T>(look: () => Promise<T> | T, done: (seen: T) => boolean): Promise<T> => {
    const giveUp = Date.now() + PATIENCE_MS;
    for (;;) {
      const seen = await look();
      if (done(seen)) return seen;
      if (Date.now() > giveUp) throw new Error(`still ${JSON.stringify(seen)}`);
      await delay(LOOK_MS);
    }
  };
  const pods = (): string[] => cluster.api.store.list("pods", NAMESPACE).map(({ metadata }) => metadata.uid);

  test("a sandbox is a pod that runs commands and keeps files, and survives the end of its server", async () => {
    const made = await call("POST", "/v0/sandboxes", { metadata: { name: "box" }, spec: { runtime: { memory: 256 } } });
    assert.equal(made.status, 200, JSON.stringify(made.body));
    await until(
      async () => (await call("GET", "/v0/sandboxes/box")).body,
      ({ status }) => status === "DEPLOYED",
    );
    const run = async (command: string): Promise<string> => {
      const body = { command, waitForCompletion: true };
      const answer = await call("POST", "/main/sandboxes/box/process", body);
      assert.equal(answer.status, 200, JSON.stringify(answer.body));
      return answer.body.logs;
    };
    assert.equal(await run("echo kept > /root/file; hostname"), "box\n");
    assert.equal((await call("PUT", "/main/sandboxes/box/filesystem//root/more", { content: "sent" })).status, 200);
    assert.equal(await run("cat /root/file /root/more"), "kept\nsent");
    const shown = JSON.stringify((await call("GET", "/v0/sandboxes/box")).body);
    assert.ok(!/token|endpoint|8982/.test(shown), shown);
    const before = pods();
    assert.equal(before.length, 1);
    await server.kill("SIGKILL");
    server = await startServer({ dataDir, env });
    assert.equal(await run("cat /root/file"), "kept\n");
    assert.deepEqual(pods(), before, "the next server goes on with the same pod");
    assert.equal((await call("DELETE", "/v0/sandboxes/box")).status, 200);
    await until(pods, ({ length }) => length === 0);
    assert.equal(cluster.api.store.list("secrets", NAMESPACE).length, 1, "the key alone is left");
  });

  test("tasks of a job are pods that end with their codes", async () => {
    const command = ["sh", "-c", "echo task; test $TASK_INDEX = 0 || exit 4"];
    const runtime = { image: "base-image", memory: 256, command };
    assert.equal((await call("POST", "/v0/jobs", { metadata: { name: "job" }, spec: { runtime } })).status, 200);
    const begun = await call("POST", "/v0/jobs/job/executions", { tasks: [{}, {}] });
    assert.equal(begun.status, 200, JSON.stringify(begun.body));
    const ended = await until(
      async () => (await call("GET", `/v0/jobs/job/executions/${begun.body.executionId}`)).body,
      ({ metadata }) => metadata.completedAt !== undefined,
    );
    assert.deepEqual([ended.stats.success, ended.stats.failure], [1, 1], JSON.stringify(ended));
    await until(pods, ({ length }) => length === 0);
  });
});
