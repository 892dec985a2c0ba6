/** Two servers on one PostgreSQL whose workloads are pods of one cluster: any server acts on any workload. */
import { after, before, describe } from "node:test";
import { freePort } from "../free-port.ts";
import {
  BASE_IMAGE,
  BERTH_IMAGE,
  kubernetesMissing,
  type Cluster as Pods,
  startCluster as startPods,
} from "../kubernetes/cluster.ts";
import { NAMESPACE } from "../kubernetes/kubelet.ts";
import { privatePostgresMissing } from "../postgres.ts";
import { type Cluster, startCluster } from "./cluster.ts";
import { counting } from "./counting.ts";
import { sharing } from "./sharing.ts";
import type { Running } from "./what-runs.ts";

describe("two servers with pods", { skip: kubernetesMissing ?? privatePostgresMissing() }, () => {
  let pods: Pods;
  let cluster: Cluster<"a" | "b">;
  before(async () => {
    pods = await startPods();
    cluster = await startCluster(["a", "b"], {
      isShared: true,
      running: () => runningIn(pods),
      env: async () => {
        const port = await freePort();
        return {
          BERTH_DRIVER: "kubernetes",
          KUBECONFIG: pods.kubeconfig,
          BERTH_KUBE_NAMESPACE: NAMESPACE,
          BERTH_KUBE_IMAGE: BERTH_IMAGE,
          BERTH_KUBE_BASE_IMAGE: BASE_IMAGE,
          BERTH_KUBE_DOORS: `127.0.0.1:${port}`,
          BERTH_KUBE_DOOR_PORT: String(port),
        };
      },
    });
  });
  after(async () => {
    await cluster?.stop();
    await pods?.stop();
  });

  sharing(() => cluster);
  counting(() => cluster, 6, "all");
});

/** Pods with an owner whose first process runs. */
const runningIn = ({ api }: Pods): Running[] =>
  api.store.list("pods", NAMESPACE).flatMap(({ metadata, status }) => {
    const { phase } = status as { phase: string };
    const record = metadata.annotations?.["berth.record"];
    if (phase !== "Running" || record === undefined || metadata.deletionTimestamp) return [];
    const { uid, name } = JSON.parse(record) as { uid: string; name: string };
    return [{ uid, name, pid: 0, startTime: metadata.uid }];
  });
