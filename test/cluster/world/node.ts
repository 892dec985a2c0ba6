/** A node: containerd with a network for pods, and the kubelet. */
import { execFile } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { CNI_BIN, DEBIAN, PATH } from "../parts/folder.ts";
import { NODE_IP, type NodeSpec } from "./addresses.ts";
import { Program } from "./program.ts";
import { writeRegistries } from "./registry.ts";
import { CLUSTER_DOMAIN } from "./service-network.ts";
import { until } from "./until.ts";

const run = promisify(execFile);

/** The image that holds the namespaces of a pod. */
export const PAUSE_IMAGE = "localhost/berth/pause:1";

export interface ClusterNode {
  name: string;
  containerd: Program;
  kubelet: Program;
}

export const containerdSocket = (dir: string, { name }: NodeSpec): string => join(dir, `containerd-${name}.sock`);

/** Resolves when it answers. */
export async function startContainerd(clusterDir: string, node: NodeSpec): Promise<Program> {
  const dir = join(clusterDir, node.name);
  const [config, socket] = [join(dir, "containerd.toml"), containerdSocket(clusterDir, node)];
  mkdirSync(join(dir, "cni"), { recursive: true });
  writeFileSync(join(dir, "cni/10-pods.conflist"), JSON.stringify(podNetwork(node), null, 2));
  writeFileSync(config, containerdConfig(dir, socket));
  const containerd = new Program({ dir, name: "containerd", args: ["--config", config] });
  await until("containerd answers", async () => {
    containerd.check();
    return run("ctr", ["--address", socket, "version"], { env: { PATH } });
  });
  return containerd;
}

export interface KubeletOptions {
  kubeconfig: string;
  /** Of its pods. */
  cgroup: string;
}

export function startKubelet(clusterDir: string, node: NodeSpec, { kubeconfig, cgroup }: KubeletOptions): Program {
  const dir = join(clusterDir, node.name);
  const config = join(dir, "kubelet.yaml");
  writeFileSync(
    config,
    JSON.stringify(
      { ...kubeletConfig(dir, containerdSocket(clusterDir, node), node), cgroupRoot: `/${cgroup}` },
      null,
      2,
    ),
  );
  return new Program({
    ...{ dir, name: "kubelet", revived: true },
    args: [
      ...["--config", config, "--kubeconfig", kubeconfig, "--root-dir", join(dir, "kubelet")],
      ...["--cert-dir", join(dir, "kubelet-certificates"), "--hostname-override", node.name, "--node-ip", node.ip],
    ],
  });
}

/** Every pod has a wire of its own to the node, so the node's firewall sees all that pods say to each other. */
const podNetwork = ({ name, podRange }: NodeSpec): object => ({
  cniVersion: "0.4.0",
  name: `pods-${name}`,
  plugins: [
    {
      type: "ptp",
      ipMasq: false,
      ipam: { type: "host-local", ranges: [[{ subnet: podRange }]], routes: [{ dst: "0.0.0.0/0" }] },
    },
  ],
});

/** `restrict_oom_score_adj`: where this process may not lower the score, containers keep the one it has. */
const containerdConfig = (dir: string, socket: string): string => `version = 2
root = "${join(dir, "containerd")}"
state = "${join(dir, "containerd-state")}"
oom_score = 0
[grpc]
  address = "${socket}"
[ttrpc]
  address = "${socket}.ttrpc"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${PAUSE_IMAGE}"
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "${writeRegistries(dir)}"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "${CNI_BIN}"
    conf_dir = "${join(dir, "cni")}"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        BinaryName = "${join(DEBIAN, "usr/sbin/runc")}"
[plugins."io.containerd.internal.v1.opt"]
  path = "${join(dir, "opt")}"
`;

const kubeletConfig = (dir: string, socket: string, { ip, port }: NodeSpec): object => ({
  apiVersion: "kubelet.config.k8s.io/v1beta1",
  kind: "KubeletConfiguration",
  address: ip,
  port,
  healthzPort: port + 1,
  authentication: { anonymous: { enabled: true }, webhook: { enabled: false } },
  authorization: { mode: "AlwaysAllow" },
  containerRuntimeEndpoint: `unix://${socket}`,
  cgroupDriver: "cgroupfs",
  cgroupsPerQOS: true,
  enforceNodeAllocatable: [],
  failCgroupV1: false,
  failSwapOn: false,
  volumePluginDir: join(dir, "volume-plugins"),
  podLogsDir: join(dir, "pod-logs"),
  resolvConf: "",
  clusterDNS: [NODE_IP],
  clusterDomain: CLUSTER_DOMAIN,
  // The images were imported by hand and cannot be pulled again.
  imageGCHighThresholdPercent: 100,
  evictionHard: { "memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%" },
  // Tests wait for states that the kubelet reports.
  nodeStatusUpdateFrequency: "2s",
  syncFrequency: "5s",
  shutdownGracePeriod: "0s",
});
