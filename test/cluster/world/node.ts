/** One node: containerd with a network for pods, and the kubelet. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CNI_BIN, DEBIAN } from "../parts/folder.ts";
import { NODE_IP, POD_RANGE } from "./addresses.ts";
import { NODE_NAME } from "./kubeconfig.ts";
import { Program } from "./program.ts";
import { CLUSTER_DOMAIN } from "./service-network.ts";

/** The image that holds the namespaces of a pod. */
export const PAUSE_IMAGE = "localhost/berth/pause:1";

export interface NodeOptions {
  /** Folder of the cluster. */
  dir: string;
  kubeconfig: string;
}

export const containerdSocket = (dir: string): string => join(dir, "containerd.sock");

export function startContainerd(dir: string): Program {
  mkdirSync(join(dir, "cni"));
  writeFileSync(join(dir, "cni/10-pods.conflist"), JSON.stringify(podNetwork, null, 2));
  writeFileSync(join(dir, "containerd.toml"), containerdConfig(dir));
  return new Program({ dir, name: "containerd", args: ["--config", join(dir, "containerd.toml")] });
}

export function startKubelet({ dir, kubeconfig }: NodeOptions): Program {
  const config = join(dir, "kubelet.yaml");
  writeFileSync(config, JSON.stringify(kubeletConfig(dir), null, 2));
  return new Program({
    ...{ dir, name: "kubelet" },
    args: [
      ...["--config", config, "--kubeconfig", kubeconfig, "--root-dir", join(dir, "kubelet")],
      ...["--cert-dir", join(dir, "kubelet-certificates"), "--hostname-override", NODE_NAME, "--node-ip", NODE_IP],
    ],
  });
}

/** Pods get addresses of one bridge; the machine outside the namespace is out of their reach. */
const podNetwork = {
  cniVersion: "0.4.0",
  name: "pods",
  plugins: [
    {
      type: "bridge",
      bridge: "pods0",
      isGateway: true,
      ipMasq: false,
      hairpinMode: true,
      ipam: { type: "host-local", ranges: [[{ subnet: POD_RANGE }]], routes: [{ dst: "0.0.0.0/0" }] },
    },
  ],
};

/** `restrict_oom_score_adj`: where this process may not lower the score, containers keep the one it has. */
const containerdConfig = (dir: string): string => `version = 2
root = "${join(dir, "containerd")}"
state = "${join(dir, "containerd-state")}"
oom_score = 0
[grpc]
  address = "${containerdSocket(dir)}"
[ttrpc]
  address = "${containerdSocket(dir)}.ttrpc"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${PAUSE_IMAGE}"
  restrict_oom_score_adj = true
  disable_apparmor = true
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

const kubeletConfig = (dir: string): object => ({
  apiVersion: "kubelet.config.k8s.io/v1beta1",
  kind: "KubeletConfiguration",
  address: NODE_IP,
  authentication: { anonymous: { enabled: true }, webhook: { enabled: false } },
  authorization: { mode: "AlwaysAllow" },
  containerRuntimeEndpoint: `unix://${containerdSocket(dir)}`,
  cgroupDriver: "cgroupfs",
  cgroupsPerQOS: false,
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
