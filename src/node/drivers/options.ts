/** What the platform tells a driver, whatever its name, and what it asks of a driver that is not open. */
import type { Socket } from "node:net";
import type { LogTag } from "../../contract/log-line.ts";
import type { EgressOptions } from "../egress/egress-proxy.ts";
import type { CommandOf } from "../images/image-command.ts";
import type { Grade } from "../workload.ts";
import type { KubeSettings } from "./kubernetes/settings.ts";

/** What the platform tells a driver of any name. */
export interface DriverOptions {
  /** Folder of this driver alone. */
  dataDir: string;
  /** The word that stands before the slash in image names. */
  brand: string;
  /** A Node executable to put into the base image. */
  nodeBinary?: string;
  /** Name of this machine; default: its host name. */
  node?: string;
  /** Prepared workloads per kind of workload in use; default 0. */
  poolSize?: number;
  /** Run workloads as plain processes where the machine can give no isolation. */
  allowUnisolated?: boolean;
  /** For the local driver: the weakest grade of a workload, and the path of runsc. */
  isolation?: Grade | undefined;
  runsc?: string | undefined;
  /** MB that the roots of workloads leave free on the disk of `dataDir`. */
  keepFreeMb?: number;
  /** For the Docker driver: DOCKER_HOST, an image in place of the base image, and a runtime of that engine. */
  docker?: { host?: string | undefined; image?: string | undefined; runtime?: string | undefined };
  /** For the Kubernetes driver. */
  kubernetes?: KubeSettings;
  /** A connection that a workload made to the platform. The default hangs up. */
  onPlatform?: (uid: string, socket: Socket) => void;
  /** Rules and counting of what goes out. */
  egress?: EgressOptions;
  /** Egress gateways may have IPv6 addresses: workloads with a network of their own get one, too. */
  ipv6?: boolean;
  /** The command that an image names, for a driver that never sees the image's configuration. */
  commandOf?: CommandOf;
  /** Whether another server was heard of lately, for a driver whose workloads belong to all servers. */
  isLive?: (node: string) => boolean;
  /** For the local driver: a socket through which mounts of drives of other nodes reach these nodes. */
  driveSocket?: string | undefined;
  /** Trouble in the background that no caller hears of. */
  onWarning?: (message: string, fields: Record<string, unknown>) => void;
}

/** A workload that has an owner. */
export interface OwnedWorkload {
  /** Its host name. */
  name: string;
  log?: LogTag;
  /** Its processes run. */
  runs: boolean;
  /** Its files outlive its processes. */
  keepsFiles: boolean;
}
