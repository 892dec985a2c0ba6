/** A real server process whose workloads are pods of a cluster of the test's own. */
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { freePort } from "../free-port.ts";
import { type Answer, TEST_KEY } from "../platform.ts";
import { addImage, type FakeRegistry, startFakeRegistry } from "../registry/fake-registry.ts";
import { pushImage } from "../registry/push-image.ts";
import { type ServerProcess, startServer } from "../server-process.ts";
import {
  BASE_IMAGE,
  BERTH_IMAGE,
  type Cluster,
  kubernetesMissing,
  PRIVATE_IMAGE,
  PRIVATE_LOGIN,
  startCluster,
} from "./cluster.ts";
import { NAMESPACE } from "./kubelet.ts";

/** Far longer than anything here takes: a test that waits in vain fails. */
const PATIENCE_MS = 240_000;
const LOOK_MS = 50;

describe("a server with driver kubernetes", { skip: kubernetesMissing ?? false }, () => {
  const dataDir = mkdtempSync(join(tmpdir(), "berth-kube-server-"));
  let cluster: Cluster;
  let registry: FakeRegistry;
  let server: ServerProcess;
  let env: Record<string, string>;

  before(async () => {
    cluster = await startCluster();
    registry = await startFakeRegistry();
    addImage(registry, "team/tool:1", { layers: [] });
    const port = String(await freePort());
    env = {
      BERTH_DRIVER: "kubernetes",
      KUBECONFIG: cluster.kubeconfig,
      BERTH_KUBE_NAMESPACE: NAMESPACE,
      BERTH_KUBE_IMAGE: BERTH_IMAGE,
      BERTH_KUBE_BASE_IMAGE: BASE_IMAGE,
      BERTH_KUBE_POOL_SIZE: "0",
      BERTH_KUBE_DOORS: `127.0.0.1:${port}`,
      BERTH_KUBE_DOOR_PORT: port,
      BERTH_REGISTRIES: `private.example,${registry.host}`,
    };
    server = await startServer({ dataDir, env });
  });
  after(async () => {
    await server?.kill("SIGKILL").catch(() => {});
    await cluster?.stop();
    await registry?.[Symbol.asyncDispose]();
    rmSync(dataDir, { recursive: true, force: true, maxRetries: 10 });
  });

  const call = async (method: string, path: string, body?: unknown, headers: object = {}): Promise<Answer> => {
    const answer = await fetch(`${server.url}${path}`, {
      method,
      headers: { authorization: `Bearer ${TEST_KEY}`, "content-type": "application/json", ...headers },
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

  test("a private image is pulled with the credentials of its workspace alone", async () => {
    const [USERNAME, PASSWORD] = PRIVATE_LOGIN;
    const connection = {
      metadata: { name: "tools" },
      spec: { integration: "registry", config: { registry: "private.example" }, secret: { USERNAME, PASSWORD } },
    };
    assert.equal((await call("POST", "/v0/integrations/connections", connection)).status, 200);
    assert.equal((await call("POST", "/v0/workspaces", { name: "others" })).status, 200);
    const make = (name: string, workspace: string, image: string): Promise<Answer> => {
      const body = { metadata: { name }, spec: { runtime: { image, memory: 256 } } };
      return call("POST", "/v0/sandboxes", body, { "x-service-workspace": workspace });
    };
    const mine = await make("mine", "main", PRIVATE_IMAGE);
    assert.equal(mine.body.status, "DEPLOYED", JSON.stringify(mine.body));
    const theirs = await make("theirs", "others", PRIVATE_IMAGE);
    assert.match(JSON.stringify(theirs.body), /401 Unauthorized/);
    assert.match(JSON.stringify((await make("unknown", "main", "service/unknown")).body), /There is no image/);
    assert.match(JSON.stringify((await make("far", "main", "elsewhere.example/tool")).body), /not allowed/);
    assert.equal((await call("DELETE", "/v0/sandboxes/mine")).status, 200);
    await until(pods, ({ length }) => length === 0);
    assert.equal(cluster.api.store.list("secrets", NAMESPACE).length, 1, "the key alone is left");
  });

  test("an image that was pushed to the platform is a pod's, by its name in the workspace and with its credentials", async () => {
    const authorization = `Basic ${Buffer.from(`any:${TEST_KEY}`).toString("base64")}`;
    await pushImage(server.url, registry, "team/tool:1", { authorization, to: "main/own:1" });
    const { host } = new URL(server.url);
    const digest = registry.tags.get("team/tool:1") ?? "";
    cluster.kubelet.addImage(`${host}/main/sandbox/own@${digest}`, {
      ...{ files: {}, env: { FROM_IMAGE: "pushed" }, login: `any:${TEST_KEY}` },
    });
    const body = { metadata: { name: "pushed" }, spec: { runtime: { image: "own:1", memory: 256 } } };
    assert.match(JSON.stringify((await call("POST", "/v0/sandboxes", body)).body), /401 Unauthorized/);
    assert.equal((await call("DELETE", "/v0/sandboxes/pushed")).status, 200);
    const secret = { USERNAME: "any", PASSWORD: TEST_KEY };
    const spec = { integration: "registry", config: { registry: host }, secret };
    const connection = await call("POST", "/v0/integrations/connections", { metadata: { name: "ours" }, spec });
    assert.equal(connection.status, 200, JSON.stringify(connection.body));
    const made = await call("POST", "/v0/sandboxes", { ...body, metadata: { name: "again" } });
    assert.equal(made.body.status, "DEPLOYED", JSON.stringify(made.body));
    const asked = { command: "echo $FROM_IMAGE", waitForCompletion: true };
    assert.equal((await call("POST", "/main/sandboxes/again/process", asked)).body.logs, "pushed\n");
    assert.equal((await call("DELETE", "/v0/sandboxes/again")).status, 200);
    await until(pods, ({ length }) => length === 0);
  });

  test("a workspace that runs signed images only gets no other image from the kubelet", async () => {
    const { publicKey } = generateKeyPairSync("ed25519");
    const publicKeys = [publicKey.export({ type: "spki", format: "pem" })];
    assert.equal((await call("POST", "/v0/workspaces", { name: "signed" })).status, 200);
    const runtime = { imageSignatures: { publicKeys } };
    assert.equal((await call("PUT", "/v0/workspaces/signed", { runtime })).status, 200);
    const image = `${registry.host}/team/tool:1`;
    const body = { metadata: { name: "unsigned" }, spec: { runtime: { image, memory: 256 } } };
    const made = await call("POST", "/v0/sandboxes", body, { "x-service-workspace": "signed" });
    assert.match(JSON.stringify(made.body), /runs signed images only, and sha256:[0-9a-f]{64} is not signed/);
    assert.deepEqual(pods(), []);
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
