/** A workload as the API server is asked for it. */

import { GATE_ADDRESS_VARIABLE, SANDBOX_RUN_DIR } from "../../../../contract/sandbox-wire.ts";
import type { Limits } from "../../../workload.ts";
import { BIN_DIR, HOST_DIR, INIT_ARGV } from "../../common/daemon-config.ts";
import { rootSizeMb } from "../../common/root-size.ts";
import { DAEMON_IN_IMAGE, GATE_PORT } from "../settings.ts";
import { labelsOf } from "./names.ts";
import { cpuText, memoryText } from "./quantity.ts";

export const CONTAINER = "workload";
/** Init containers, in their order. */
export const DAEMON_CONTAINER = "daemon";
export const USER_CONTAINER = "user";

/** What is the same for all pods of a driver. */
export interface PodGround {
  instance: string;
  /** Image of Berth. */
  image: string;
  runtimeClass?: string | undefined;
  pullSecrets: readonly string[];
  userNamespaces: boolean;
}

export interface PodOrder {
  name: string;
  host: string;
  /** Beside those of every workload. */
  labels: Record<string, string>;
  annotations: Record<string, string>;
  /** Name of the Secret with the daemon's configuration. */
  secret: string;
  image: string;
  /** Whether processes get the user that the image names. */
  ownUser: boolean;
  /**
   * Whether a tenant has named the image. The kubelet then asks the image's registry at every start, whatever the tenant
   * wants: an image that another tenant's credentials brought to the node would run without credentials otherwise.
   */
  isTenantImage?: boolean;
  /** Name of the Secret with the workspace's credentials for the image; absent: it has none. */
  pullSecret?: string | undefined;
  limits: Limits;
  /** Default: by memory. */
  storageMb?: number | undefined;
  workDir?: string | undefined;
  claims: { claim: string; path: string; readOnly: boolean }[];
}

/**
 * What root inside may do: all of it within the "baseline" standard for pods. Without raw sockets and device nodes; with
 * the rights to give files and processes to other users, which package managers need.
 */
const CAPABILITIES = [
  ...["AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE", "SETFCAP", "SETGID"],
  ...["SETPCAP", "SETUID", "SYS_CHROOT"],
];
/** For the kubelet's own removal of a pod; a removal by Berth says its own time. */
export const GRACE_SECONDS = 30;
const OWNER_READS = 0o400;
/** A folder for one file, which a process of the image's user makes: the file's owner is that user. */
const USER_DIR = `${SANDBOX_RUN_DIR}/user`;
export const USER_FILE = `${USER_DIR}/owner`;

/** Requests are the limits: a quota of the namespace counts what a workload can use. */
export function resourcesOf({ memoryMb, cpus }: Limits) {
  const amounts = { cpu: cpuText(cpus), memory: memoryText(memoryMb) };
  return { limits: amounts, requests: amounts };
}

/** A pod that writes more is evicted: its root, its output and its shared folders count together. */
const storageText = memoryText;
/** What a machine has to have free for a new pod. Pods seldom fill their storage, so their machine may promise more. */
const STORAGE_REQUEST_MB = 1024;
/** The daemon's executable, with room for the next versions. */
const BIN_MB = 512;
const USER_MB = 1;

export function podBody(ground: PodGround, order: PodOrder) {
  const { instance, image, runtimeClass, pullSecrets, userNamespaces } = ground;
  const { name, host, claims } = order;
  const pullNames = [...(order.pullSecret === undefined ? [] : [order.pullSecret]), ...pullSecrets];
  const pullPolicy = order.isTenantImage ? "Always" : "IfNotPresent";
  const { storageMb = rootSizeMb(order.limits.memoryMb) } = order;
  const { limits, requests } = resourcesOf(order.limits);
  const resources = {
    limits: { ...limits, "ephemeral-storage": storageText(storageMb) },
    requests: { ...requests, "ephemeral-storage": storageText(Math.min(storageMb, STORAGE_REQUEST_MB)) },
  };
  const asRoot = { runAsUser: 0, runAsGroup: 0 };
  const secured = (add: string[]) => ({
    privileged: false,
    allowPrivilegeEscalation: false,
    capabilities: { drop: ["ALL"], ...(add.length > 0 ? { add } : {}) },
    seccompProfile: { type: "RuntimeDefault" },
  });
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name,
      labels: { ...labelsOf(instance, "workload"), ...order.labels },
      annotations: order.annotations,
    },
    spec: {
      restartPolicy: "Never",
      hostname: host,
      terminationGracePeriodSeconds: GRACE_SECONDS,
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      shareProcessNamespace: false,
      // Names are resolved by the platform's proxy.
      dnsPolicy: "None",
      dnsConfig: { nameservers: ["127.0.0.1"] },
      ...(userNamespaces ? { hostUsers: false } : {}),
      ...(runtimeClass === undefined ? {} : { runtimeClassName: runtimeClass }),
      ...(pullNames.length > 0 ? { imagePullSecrets: pullNames.map((each) => ({ name: each })) } : {}),
      securityContext: { seccompProfile: { type: "RuntimeDefault" } },
      initContainers: [
        {
          name: DAEMON_CONTAINER,
          image,
          imagePullPolicy: "IfNotPresent",
          command: [DAEMON_IN_IMAGE, "install", `${BIN_DIR}/sandboxd`],
          resources,
          securityContext: { ...secured([]), ...asRoot },
          volumeMounts: [{ name: "bin", mountPath: BIN_DIR }],
        },
        ...(order.ownUser
          ? [
              {
                name: USER_CONTAINER,
                image: order.image,
                imagePullPolicy: pullPolicy,
                command: [`${BIN_DIR}/sandboxd`, "sign", USER_FILE],
                resources,
                securityContext: secured([]),
                volumeMounts: [
                  { name: "bin", mountPath: BIN_DIR, readOnly: true },
                  { name: "user", mountPath: USER_DIR },
                ],
              },
            ]
          : []),
      ],
      containers: [
        {
          name: CONTAINER,
          image: order.image,
          imagePullPolicy: pullPolicy,
          command: INIT_ARGV,
          ...(order.workDir === undefined ? {} : { workingDir: order.workDir }),
          env: [{ name: GATE_ADDRESS_VARIABLE, valueFrom: { fieldRef: { fieldPath: "status.podIP" } } }],
          ports: [{ name: "gate", containerPort: GATE_PORT, protocol: "TCP" }],
          resources,
          securityContext: { ...secured(CAPABILITIES), ...asRoot },
          volumeMounts: [
            { name: "run", mountPath: SANDBOX_RUN_DIR },
            { name: "bin", mountPath: BIN_DIR, readOnly: true },
            { name: "host", mountPath: HOST_DIR, readOnly: true },
            ...(order.ownUser ? [{ name: "user", mountPath: USER_DIR, readOnly: true }] : []),
            ...claims.map(({ path, readOnly }, index) => ({ name: `claim-${index}`, mountPath: path, readOnly })),
          ],
        },
      ],
      volumes: [
        { name: "run", emptyDir: { sizeLimit: storageText(storageMb) } },
        { name: "bin", emptyDir: { sizeLimit: storageText(BIN_MB) } },
        ...(order.ownUser ? [{ name: "user", emptyDir: { sizeLimit: storageText(USER_MB) } }] : []),
        { name: "host", secret: { secretName: order.secret, defaultMode: OWNER_READS } },
        ...claims.map(({ claim }, index) => ({
          name: `claim-${index}`,
          persistentVolumeClaim: { claimName: claim },
        })),
      ],
    },
  };
}
