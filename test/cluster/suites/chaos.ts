/** Parts of the cluster end without warning; files and processes of workloads that live on are still theirs. */
import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import type { Cluster } from "../world/cluster.ts";
import { until } from "../world/until.ts";
import { type Installation, NAMESPACE } from "./installation.ts";
import { Workloads } from "./workloads.ts";

export function chaos(cluster: () => Cluster, get: () => Installation): void {
  suite("chaos on a real cluster", () => {
    const workloads = new Workloads(cluster, get);
    let uid: string | undefined;

    before(async () => {
      await workloads.makeSandbox("survivor");
      await workloads.run("survivor", "echo kept > /root/file; sleep 100000 & echo $! > /root/pid");
      uid = (await workloads.pods())[0]?.metadata.uid;
    });
    after(() => workloads.remove("sandboxes", "survivor"));

    /** The same pod, with the file and the process that were there before. */
    const isUnhurt = async (others = 0): Promise<void> => {
      const seen = await until("the sandbox answers", () =>
        workloads.run("survivor", "cat /root/file; kill -0 $(cat /root/pid) && echo alive"),
      );
      assert.equal(seen, "kept\nalive\n");
      const uids = (await workloads.pods()).map(({ metadata }) => metadata.uid);
      assert.ok(uids.includes(uid ?? "") && uids.length === 1 + others, uids.join());
    };

    test("the kubelets end and come back", async () => {
      const { nodes, nodesReady } = cluster();
      for (const { kubelet } of nodes) await kubelet.restart();
      await isUnhurt();
      await nodesReady();
      await isUnhurt();
    });

    test("containerd ends and comes back", async () => {
      const { nodes, nodesReady } = cluster();
      for (const { containerd } of nodes) await containerd.restart();
      await isUnhurt();
      await nodesReady();
      await isUnhurt();
    });

    test("the API server ends: running sandboxes answer meanwhile, and a create waits for it", async () => {
      const { control } = cluster();
      await control.apiServer.stop("SIGKILL");
      assert.equal(await workloads.run("survivor", "cat /root/file"), "kept\n");
      const making = workloads.makeSandbox("patient");
      control.apiServer.start();
      await control.ready();
      await making;
      assert.equal(await workloads.run("patient", "echo here"), "here\n");
      assert.equal((await workloads.pods()).length, 2);
      await get().call("DELETE", "/v0/sandboxes/patient");
      await until("one pod is left", async () => (await workloads.pods()).length === 1);
      await isUnhurt();
    });

    test("etcd ends without warning and comes back", async () => {
      const { control } = cluster();
      await control.etcd.restart();
      assert.equal(await workloads.run("survivor", "cat /root/file"), "kept\n");
      await control.ready();
      await isUnhurt();
    });

    test("a server ends without warning: the other one serves, and nothing is made twice", async () => {
      const [victim = ""] = await get().servers();
      await cluster().kubectl("delete", "pod", victim, "-n", NAMESPACE, "--force", "--grace-period=0");
      await isUnhurt();
      await until("two servers are ready again", async () => (await get().servers()).length === 2);
      await isUnhurt();
    });

    test("an upgrade replaces the servers one by one, and requests are answered meanwhile", async () => {
      const upgrading = get().upgrade();
      let done = false;
      const ended = upgrading.finally(() => {
        done = true;
      });
      while (!done) assert.equal(await workloads.run("survivor", "cat /root/file"), "kept\n");
      await ended;
      await isUnhurt();
    });

    test("nodes that are cordoned take no new sandbox until one is opened again, and the others go on", async () => {
      const { kubectl, nodes } = cluster();
      for (const { name } of nodes) await kubectl("cordon", name);
      const making = workloads.makeSandbox("later");
      try {
        await until("its pod waits", async () => {
          const waiting = (await workloads.pods()).find(({ metadata }) => metadata.uid !== uid);
          return waiting?.status.phase === "Pending" && waiting.spec.nodeName === undefined;
        });
        await isUnhurt(1);
      } finally {
        for (const { name } of nodes) await kubectl("uncordon", name);
      }
      await making;
      await get().call("DELETE", "/v0/sandboxes/later");
      await until("one pod is left", async () => (await workloads.pods()).length === 1);
    });

    test("an evicted pod: the sandbox is in service again with one pod, and says that its files are gone", async () => {
      const [pod] = await workloads.pods();
      const eviction = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name: pod?.metadata.name } };
      await cluster().post(`/api/v1/namespaces/${NAMESPACE}/pods/${pod?.metadata.name}/eviction`, eviction);
      await until("a new pod answers", async () => {
        const now = await workloads.pods();
        return (
          now.length === 1 &&
          now[0]?.metadata.uid !== uid &&
          (await workloads.run("survivor", "echo here")) === "here\n"
        );
      });
      assert.equal(await workloads.run("survivor", "cat /root/file 2>/dev/null || echo gone"), "gone\n");
      const told = JSON.stringify((await get().call("GET", "/v0/sandboxes/survivor")).body);
      assert.match(told, /image|lost|evict/i);
    });
  });
}
