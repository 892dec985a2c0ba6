/** The cluster itself: what the other suites stand on. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Cluster } from "../world/cluster.ts";
import { PAUSE_IMAGE } from "../world/node.ts";
import { until } from "../world/until.ts";

interface Pod {
  status: { phase: string; podIP?: string };
}

export function basics(get: () => Cluster): void {
  test("the cluster runs a pod with an address and a volume", async () => {
    const { apply, look, kubectl } = get();
    await apply(claim, pod);
    const running = await until("the pod runs", async () => {
      const seen = await look<Pod>("get", "pod", "basics");
      return seen.status.phase === "Running" && seen;
    });
    assert.match(running.status.podIP ?? "", /^10\.244\./);
    await kubectl("delete", "pod/basics", "pvc/basics", "--wait");
  });
}

const claim = {
  apiVersion: "v1",
  kind: "PersistentVolumeClaim",
  metadata: { name: "basics" },
  spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
};
const pod = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "basics" },
  spec: {
    containers: [
      {
        name: "main",
        image: PAUSE_IMAGE,
        resources: { limits: { memory: "64Mi", cpu: "1" } },
        volumeMounts: [{ name: "data", mountPath: "/data" }],
      },
    ],
    volumes: [{ name: "data", persistentVolumeClaim: { claimName: "basics" } }],
    terminationGracePeriodSeconds: 1,
  },
};
