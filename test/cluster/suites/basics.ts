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

  test("a network policy keeps out everybody but those whom it names", async () => {
    const { apply, kubectl, look, networkSettled } = get();
    const idle = "setInterval(() => {}, 1000)";
    const both = `${serve(7000)}; ${serve(7001)}`;
    await apply(policy, labelled("target", both), labelled("friend", idle), labelled("stranger", idle));
    const address = await until("all three run", async () => {
      const pods = await Promise.all(["target", "friend", "stranger"].map((name) => look<Pod>("get", "pod", name)));
      return pods.every(({ status }) => status.phase === "Running") && pods[0]?.status.podIP;
    });
    await networkSettled();
    const reaches = (from: string, port: number): Promise<string> => {
      const ask = `const s = require("net").connect(${port}, "${address}"); s.setTimeout(3000, () => { console.log("silence"); process.exit() }); s.pipe(process.stdout)`;
      return kubectl("exec", from, "--", "node", "-e", ask);
    };
    assert.equal(await until("the target listens", () => reaches("friend", 7000)), "hello");
    assert.equal(await reaches("friend", 7001), "silence\n");
    assert.equal(await reaches("stranger", 7000), "silence\n");
    await kubectl("delete", "pod/target", "pod/friend", "pod/stranger", "networkpolicy/basics", "--wait");
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

const labelled = (name: string, script: string): object => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, labels: { "policy-suite": name } },
  spec: {
    containers: [{ name: "main", image: BERTH_IMAGE_NAME, command: ["node", "-e", script] }],
    terminationGracePeriodSeconds: 0,
  },
});
const serve = (port: number): string => `require("net").createServer((s) => s.end("hello")).listen(${port})`;
const policy = {
  apiVersion: "networking.k8s.io/v1",
  kind: "NetworkPolicy",
  metadata: { name: "basics" },
  spec: {
    podSelector: { matchLabels: { "policy-suite": "target" } },
    policyTypes: ["Ingress"],
    ingress: [{ from: [{ podSelector: { matchLabels: { "policy-suite": "friend" } } }], ports: [{ port: 7000 }] }],
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
