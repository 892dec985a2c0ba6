/** The cluster itself: what the other suites stand on. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { BERTH_IMAGE_NAME } from "../world/berth-image.ts";
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

  test("the image of Berth starts as the chart starts it: another user, and a root that cannot be written", async () => {
    const { apply, kubectl, look } = get();
    await apply(berthPod);
    await until("the pod ended", async () => {
      const { status } = await look<Pod>("get", "pod", "version");
      return ["Succeeded", "Failed"].includes(status.phase);
    });
    assert.match(await kubectl("logs", "version"), /^\d+\.\d+\.\d+\n10001\n10\.96\.0\.1/m);
    await kubectl("delete", "pod/version", "--wait");
  });
}

/** Dials a service by its name and says which address that is. */
const dial =
  "const s = require('net').connect(443, 'kubernetes.default.svc', () => s.end(console.log(s.remoteAddress)))";
const berthPod = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "version" },
  spec: {
    restartPolicy: "Never",
    containers: [
      {
        name: "main",
        image: BERTH_IMAGE_NAME,
        command: ["sh", "-c", `berth --version && id -u && node -e "${dial}"`],
        securityContext: { runAsUser: 10001, readOnlyRootFilesystem: true, allowPrivilegeEscalation: false },
      },
    ],
  },
};

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
