/**
 * A real Kubernetes cluster with two nodes: etcd, API server, controllers, scheduler, kube-proxy, and a containerd and a
 * kubelet for each node, as children of this process. It has to run in namespaces of its own (`run.ts` makes them):
 * their end takes the rest down.
 */
import type { Socket } from "node:dgram";
import type { Server } from "node:http";
import { BIN } from "../parts/folder.ts";
import { bringUpNetwork, NODES } from "./addresses.ts";
import { makeControlGroup } from "./control-groups.ts";
import { askApi, type ControlPlane, startControlPlane } from "./control-plane.ts";
import { coverFixedFolders } from "./fixed-folders.ts";
import { importImage } from "./images.ts";
import { type Kubectl, kubectlWith } from "./kubectl.ts";
import { type NetworkPlugin, startNetworkPlugin } from "./network-plugin.ts";
import { type ClusterNode, PAUSE_IMAGE, startContainerd, startKubelet } from "./node.ts";
import type { Program } from "./program.ts";
import { startRegistry } from "./registry.ts";
import { type ServiceObject, startDns, startProxy } from "./service-network.ts";
import { until } from "./until.ts";

export interface Cluster extends Kubectl {
  /** The folder of the cluster's files. */
  dir: string;
  /** Kubeconfig of an administrator. */
  kubeconfig: string;
  control: ControlPlane;
  nodes: ClusterNode[];
  /** Resolves when network policies and pods of this moment are in force. */
  networkSettled(): Promise<void>;
  /** Resolves when all nodes are reported ready. */
  nodesReady(): Promise<void>;
  stop(): Promise<void>;
}

interface NodeObject {
  status: { conditions?: { type: string; status: string }[] };
}

/** In an empty folder; control groups of pods are below that one. */
export async function startCluster(dir: string, cgroup: string): Promise<Cluster> {
  coverFixedFolders(dir);
  bringUpNetwork();
  const started: Program[] = [];
  let dns: Socket | undefined;
  let plugin: NetworkPlugin | undefined;
  let registry: Server | undefined;
  const stop = async (): Promise<void> => {
    dns?.close();
    registry?.close();
    await plugin?.stop();
    for (const program of started.reverse()) await program.stop("SIGKILL");
  };
  try {
    registry = await startRegistry();
    const control = await startControlPlane(dir);
    started.push(control.etcd, control.apiServer, control.controllers, control.scheduler);
    const kubectl = kubectlWith(control.admin);
    const list = async <T>(path: string): Promise<T[]> => JSON.parse(await askApi(control, path)).items;
    const containerds = await Promise.all(NODES.map((spec) => startContainerd(dir, spec)));
    started.push(...containerds);
    await importImage(dir, { name: PAUSE_IMAGE, layers: [["-C", BIN, "pause"]], config: { Entrypoint: ["/pause"] } });
    const nodes = containerds.map((containerd, index) => {
      const spec = NODES[index] ?? NODES[0];
      makeControlGroup(`${cgroup}/${spec.name}`);
      return {
        name: spec.name,
        containerd,
        kubelet: startKubelet(dir, spec, { kubeconfig: control.kubelet(spec.name), cgroup: `${cgroup}/${spec.name}` }),
      };
    });
    started.push(...nodes.map(({ kubelet }) => kubelet), startProxy(dir, control.admin));
    dns = await startDns(() => list<ServiceObject>("/api/v1/services"));
    const network = startNetworkPlugin(list);
    plugin = network;
    const nodesReady = async (): Promise<void> => {
      await until("the nodes are ready", async () => {
        for (const { kubelet } of nodes) kubelet.check();
        const seen = await list<NodeObject>("/api/v1/nodes");
        return seen.length === nodes.length && seen.every(isReady);
      });
    };
    await nodesReady();
    await kubectl.apply(hostPathClass);
    await until("the default service account is there", () => kubectl.kubectl("get", "serviceaccount", "default"));
    return {
      ...{ dir, kubeconfig: control.admin, control, nodes, ...kubectl },
      ...{ networkSettled: network.settled, nodesReady, stop },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

const isReady = ({ status }: NodeObject): boolean =>
  status.conditions?.some((each) => each.type === "Ready" && each.status === "True") ?? false;

const hostPathClass = {
  apiVersion: "storage.k8s.io/v1",
  kind: "StorageClass",
  metadata: { name: "folders", annotations: { "storageclass.kubernetes.io/is-default-class": "true" } },
  provisioner: "kubernetes.io/host-path",
};
