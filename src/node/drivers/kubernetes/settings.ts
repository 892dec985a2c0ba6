/** The settings of the Kubernetes driver. */

export interface KubeSettings {
  namespace?: string | undefined;
  /** File of a kubeconfig; absent: the service account of this server's pod. */
  kubeconfig?: string | undefined;
  /** Address of the API server, as every pod is told. */
  apiHost?: string | undefined;
  apiPort?: string | undefined;
  /** Image of Berth, which has the daemon. */
  image?: string | undefined;
  /** Default: the image of Berth. */
  baseImage?: string | undefined;
  /** Tells installations of one namespace apart. */
  instance?: string | undefined;
  /** HOST:PORT by which pods reach a server. */
  doors?: string | undefined;
  doorPort?: number | undefined;
  /** Addresses of servers outside the cluster. */
  serverCidr?: string | undefined;
  runtimeClass?: string | undefined;
  storageClass?: string | undefined;
  pullSecrets?: readonly string[] | undefined;
  userNamespaces?: boolean | undefined;
  /** Pods of each size in demand that wait for sandboxes; default 0. */
  poolSize?: number | undefined;
}

export const INSTANCE_DEFAULT = "berth";
/** Port of a server on which workloads call the platform. */
export const DOOR_PORT_DEFAULT = 8981;
/** Port of a workload's daemon. */
export const GATE_PORT = 8982;

/** Where the daemon is in the image of Berth. */
export const DAEMON_IN_IMAGE = "/opt/berth/sandboxd";

/** Null for anything but HOST:PORT or [ADDRESS]:PORT. */
export function parseDoors(text: string): { host: string; port: number } | null {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^\s:/@]+)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3] ?? 0);
  const host = match?.[1] ?? match?.[2];
  return host !== undefined && port > 0 && port < 65536 ? { host, port } : null;
}
