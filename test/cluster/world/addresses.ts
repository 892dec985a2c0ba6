/** Addresses of the cluster. They exist in its network namespace alone, so they collide with nothing on the machine. */
import { execFileSync } from "node:child_process";

/** Of the node. A loopback address does not do: logs and exec would not reach the kubelet. */
export const NODE_IP = "10.200.0.1";
export const POD_RANGE = "10.244.0.0/16";
export const SERVICE_RANGE = "10.96.0.0/16";
export const API_PORT = 6443;
export const API_URL = `https://${NODE_IP}:${API_PORT}`;
export const ETCD_URL = "http://127.0.0.1:2379";

export function bringUpNetwork(): void {
  const ip = (...args: string[]): void => void execFileSync("ip", args);
  ip("link", "set", "lo", "up");
  // A pair whose other end leads nowhere: kernels without dummy devices have these.
  ip("link", "add", "node0", "type", "veth", "peer", "name", "nowhere");
  ip("link", "set", "nowhere", "up");
  ip("address", "add", `${NODE_IP}/24`, "dev", "node0");
  ip("link", "set", "node0", "up");
  // Programs take the address of the default route for their own.
  ip("route", "add", "default", "dev", "node0");
}
