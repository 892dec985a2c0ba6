/**
 * A real Kubernetes cluster with one node: etcd, API server, controllers, scheduler, containerd and kubelet, as children
 * of this process. It has to run in namespaces of its own (`run.ts` makes them): their end takes the rest down.
 */
import { execFile } from "node:child_process";
import type { Socket } from "node:dgram";
import { promisify } from "node:util";
import { BIN, PATH } from "../parts/folder.ts";
import { bringUpNetwork } from "./addresses.ts";
import { type ControlPlane, startControlPlane } from "./control-plane.ts";
import { coverFixedFolders } from "./fixed-folders.ts";
import { importImage } from "./images.ts";
import { NODE_NAME } from "./kubeconfig.ts";
import { containerdSocket, PAUSE_IMAGE, startContainerd, startKubelet } from "./node.ts";
import type { Program } from "./program.ts";
import { type ServiceObject, startDns, startProxy } from "./service-network.ts";
import { until } from "./until.ts";

export interface Cluster {
  /** The folder of the cluster's files. */
  dir: string;
  /** Kubeconfig of an administrator. */
  kubeconfig: string;
  control: ControlPlane;
  containerd: Program;
  kubelet: Program;
  /** Runs kubectl; its output. */
  kubectl(...args: string[]): Promise<string>;
  /** The same with `-o json`. */
  look<T>(...args: string[]): Promise<T>;
  apply(...objects: object[]): Promise<void>;
  /** Resolves when the node takes pods. */
  nodeReady(): Promise<void>;
  stop(): Promise<void>;
}

const run = promisify(execFile);

/** In an empty folder. */
export async function startCluster(dir: string): Promise<Cluster> {
  coverFixedFolders(dir);
  bringUpNetwork();
  const started: Program[] = [];
  let dns: Socket | undefined;
  const stop = async (): Promise<void> => {
    dns?.close();
    for (const program of started.reverse()) await program.stop("SIGKILL");
  };
  try {
    const containerd = startContainerd(dir);
    started.push(containerd);
    const control = await startControlPlane(dir);
    started.push(control.etcd, control.apiServer, control.controllers, control.scheduler);
    const kubectl = async (...args: string[]): Promise<string> => {
      const env = { PATH, HOME: dir, KUBECONFIG: control.admin };
      const { stdout } = await run("kubectl", args, { env, maxBuffer: 64 << 20 });
      return stdout;
    };
    const look = async <T>(...args: string[]): Promise<T> => JSON.parse(await kubectl(...args, "-o", "json")) as T;
    const apply = (...items: object[]): Promise<void> =>
      withInput(control.admin, { apiVersion: "v1", kind: "List", items });
    await until("containerd answers", async () => {
      containerd.check();
      return run("ctr", ["--address", containerdSocket(dir), "version"], { env: { PATH } });
    });
    const layers = [["-C", BIN, "pause"]];
    await importImage(dir, { name: PAUSE_IMAGE, layers, config: { Entrypoint: ["/pause"] } });
    const kubelet = startKubelet({ dir, kubeconfig: control.kubelet });
    started.push(kubelet, startProxy(dir, control.admin));
    const services = async (): Promise<ServiceObject[]> =>
      (await look<{ items: ServiceObject[] }>("get", "services", "--all-namespaces")).items;
    dns = await startDns(services);
    const nodeReady = (): Promise<void> =>
      until("the node is ready", async () => {
        kubelet.check();
        const node = await look<NodeObject>("get", "node", NODE_NAME);
        return node.status.conditions?.some(({ type, status }) => type === "Ready" && status === "True");
      }).then(() => {});
    await nodeReady();
    await apply(hostPathClass);
    await until("the default service account is there", () => kubectl("get", "serviceaccount", "default"));
    return { dir, kubeconfig: control.admin, control, containerd, kubelet, kubectl, look, apply, nodeReady, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

interface NodeObject {
  status: { conditions?: { type: string; status: string }[] };
}

const hostPathClass = {
  apiVersion: "storage.k8s.io/v1",
  kind: "StorageClass",
  metadata: { name: "folders", annotations: { "storageclass.kubernetes.io/is-default-class": "true" } },
  provisioner: "kubernetes.io/host-path",
};

function withInput(kubeconfig: string, list: object): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = execFile("kubectl", ["apply", "-f", "-"], { env: { PATH, KUBECONFIG: kubeconfig } }, (error) =>
      error ? reject(error) : resolve(),
    );
    child.stdin?.end(JSON.stringify(list));
  });
}
