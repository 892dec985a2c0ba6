/** Sandboxes, volumes, agents and jobs of two servers that the chart installed, as pods of a real cluster. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { AGENT_IMAGE } from "../world/agent-image.ts";
import type { Cluster } from "../world/cluster.ts";
import { until } from "../world/until.ts";
import { expectBody, type Installation, NAMESPACE } from "./installation.ts";
import { Workloads } from "./workloads.ts";

interface Execution {
  executionId?: string;
  metadata: { completedAt?: string };
  stats: { success: number; failure: number };
}

export function platform(cluster: () => Cluster, get: () => Installation): void {
  suite("the platform on a real cluster", () => {
    const workloads = new Workloads(cluster, get);

    test("a sandbox is a pod that runs commands and keeps files, through either server", async () => {
      await workloads.makeSandbox("box");
      assert.equal(await workloads.run("box", "echo kept > /root/file; cat /root/file"), "kept\n");
      // Each request is a connection of its own, which the service gives to either server.
      for (let n = 0; n < 16; n += 1) assert.equal(await workloads.run("box", "cat /root/file"), "kept\n");
      const [pod] = await workloads.pods();
      assert.equal(pod?.spec.automountServiceAccountToken, false);
      assert.equal((await workloads.pods()).length, 1);
      await workloads.remove("sandboxes", "box");
    });

    test("a sandbox takes the pod that waits for one of its size, and another pod waits soon", async () => {
      await until("a pod waits", async () => (await workloads.waiting()).length > 0);
      const before = (await workloads.waiting()).map(({ metadata }) => metadata.uid);
      await workloads.makeSandbox("quick", { runtime: { memory: 256, envs: [{ name: "WHO", value: "quick" }] } });
      assert.equal(await workloads.run("quick", "echo $WHO $HOSTNAME"), "quick quick\n");
      const [pod, ...others] = await workloads.pods();
      assert.ok(pod && before.includes(pod.metadata.uid) && others.length === 0);
      await workloads.run("quick", "echo kept > /root/file");
      for (let n = 0; n < 8; n += 1) assert.equal(await workloads.run("quick", "cat /root/file"), "kept\n");
      await until("another pod waits", async () =>
        (await workloads.waiting()).some(({ metadata }) => !before.includes(metadata.uid)),
      );
      await workloads.remove("sandboxes", "quick");
    });

    test("a volume outlives the sandbox that wrote to it", async () => {
      const volume = { metadata: { name: "notes" }, spec: { size: 64 } };
      await expectBody(get().call("POST", "/v0/volumes", volume));
      const spec = { volumes: [{ name: "notes", mountPath: "/notes" }] };
      await workloads.makeSandbox("writer", spec);
      await workloads.run("writer", "echo written > /notes/text");
      await workloads.remove("sandboxes", "writer");
      await workloads.makeSandbox("reader", spec);
      assert.equal(await workloads.run("reader", "cat /notes/text"), "written\n");
      await workloads.remove("sandboxes", "reader");
      await expectBody(get().call("DELETE", "/v0/volumes/notes"));
      await until("the claim is gone", async () => (await workloads.claims()).length === 0);
    });

    test("an application of an image answers", async () => {
      const { call } = get();
      const spec = { image: AGENT_IMAGE, memory: 256, command: ["node", "/srv/index.js"] };
      await expectBody(call("POST", "/v0/applications", { metadata: { name: "word" }, spec }));
      await workloads.deployed("applications", "word");
      const { word } = await expectBody(call<{ word: string }>("GET", "/main/applications/word/"));
      assert.equal(word, "hello");
      await workloads.remove("applications", "word");
    });

    test("tasks of a job run once each, as pods", async () => {
      const { call } = get();
      const command = ["sh", "-c", 'test "$TASK_INDEX" != 3'];
      const runtime = { image: "base-image", memory: 128, command, maxConcurrentTasks: 4 };
      await expectBody(call("POST", "/v0/jobs", { metadata: { name: "many" }, spec: { runtime } }));
      await workloads.deployed("jobs", "many");
      const tasks = Array.from({ length: 8 }, () => ({}));
      const begun = await expectBody(call<Execution>("POST", "/v0/jobs/many/executions", { tasks }));
      const ended = await until("the execution ended", async () => {
        const { body } = await call<Execution>("GET", `/v0/jobs/many/executions/${begun.executionId}`);
        return body.metadata.completedAt !== undefined && body;
      });
      assert.deepEqual([ended.stats.success, ended.stats.failure], [7, 1], JSON.stringify(ended));
      await workloads.remove("jobs", "many");
    });

    test("the servers may do no more than the Role says", async () => {
      const may = async (verb: string, resource: string, namespace = NAMESPACE, sub = ""): Promise<string> => {
        const account = ["--as", `system:serviceaccount:${NAMESPACE}:berth`, `--subresource=${sub}`];
        const asked = cluster().kubectl("auth", "can-i", verb, resource, "-n", namespace, ...account);
        return (await asked.catch((error: { stdout: string }) => error.stdout)).trim();
      };
      assert.equal(await may("create", "pods"), "yes");
      assert.equal(await may("create", "pods", NAMESPACE, "exec"), "no");
      assert.equal(await may("create", "serviceaccounts", NAMESPACE, "token"), "no");
      for (const [verb, resource, namespace] of [
        ["get", "secrets"],
        ["list", "secrets"],
        ["get", "secrets/berth"],
        ["create", "pods", "default"],
        ["list", "nodes"],
        ["create", "rolebindings"],
      ] as const)
        assert.equal(await may(verb, resource, namespace), "no", `${verb} ${resource}`);
    });
  });
}
