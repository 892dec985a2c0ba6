/** Addresses of the cluster. They exist in its network namespace alone, so they collide with nothing on the machine. */
import { execFileSync } from "node:child_process";

/** Of the control plane and the first node. A loopback address does not do: logs and exec would not reach a kubelet. */
export const NODE_IP = "10.200.0.1";
export const POD_RANGE = "10.244.0.0/16";
export const SERVICE_RANGE = "10.96.0.0/16";
export const API_PORT = 6443;
export const API_URL = `https://${NODE_IP}:${API_PORT}`;
export const ETCD_URL = "http://127.0.0.1:2379";

export interface NodeSpec {
  name: string;
  ip: string;
  /** Its share of the addresses of pods. */
  podRange: string;
  /** Of its kubelet; the next one tells its health. */
  port: number;
}

/** Two nodes on one machine: each has a kubelet and a containerd of its own. */
export const NODES: readonly [NodeSpec, NodeSpec] = [
  { name: "one", ip: NODE_IP, podRange: "10.244.1.0/24", port: 10_250 },
  { name: "two", ip: "10.200.0.2", podRange: "10.244.2.0/24", port: 10_260 },
];

export function bringUpNetwork(): void {
  const ip = (...args: string[]): void => void execFileSync("ip", args);
  ip("link", "set", "lo", "up");
  // A pair whose other end leads nowhere: kernels without dummy devices have these.
  ip("link", "add", "node0", "type", "veth", "peer", "name", "nowhere");
  ip("link", "set", "nowhere", "up");
  ip("address", "add", `${NODE_IP}/24`, "dev", "node0");
  for (const { ip: address } of NODES) if (address !== NODE_IP) ip("address", "add", `${address}/24`, "dev", "node0");
  ip("link", "set", "node0", "up");
  // Programs take the address of the default route for their own.
  ip("route", "add", "default", "dev", "node0");
}
