/** Settings of the driver kubernetes. */
import { z } from "zod";
import { flag, list } from "./setting-values.ts";

const text = z.string().min(1).optional();

export const kubeSettings = {
  kube_config: {
    env: "KUBECONFIG",
    schema: text,
    about: "For driver kubernetes: a kubeconfig file; absent = the service account of this server's pod.",
  },
  kube_api_host: {
    env: "KUBERNETES_SERVICE_HOST",
    schema: text,
    about: "For driver kubernetes: address of the API server; every pod is told it.",
  },
  kube_api_port: {
    env: "KUBERNETES_SERVICE_PORT",
    schema: text,
    about: "For driver kubernetes: port of the API server; every pod is told it.",
  },
  kube_namespace: {
    env: "BERTH_KUBE_NAMESPACE",
    schema: text,
    about: "For driver kubernetes: namespace of workloads; absent = that of the account.",
  },
  kube_image: {
    env: "BERTH_KUBE_IMAGE",
    schema: text,
    about: "For driver kubernetes, required: the image of Berth, from which the daemon goes into every pod.",
  },
  kube_base_image: {
    env: "BERTH_KUBE_BASE_IMAGE",
    schema: text,
    about: "For driver kubernetes: image of workloads that name none; absent = kube_image.",
  },
  kube_instance: {
    env: "BERTH_KUBE_INSTANCE",
    schema: text,
    about: "For driver kubernetes: label that tells installations of one namespace apart; absent = berth.",
  },
  kube_doors: {
    env: "BERTH_KUBE_DOORS",
    schema: text,
    about: "For driver kubernetes, required: HOST:PORT at which pods reach any server, such as a Service.",
  },
  kube_door_port: {
    env: "BERTH_KUBE_DOOR_PORT",
    schema: z.coerce.number().int().min(1).max(65_535).default(8981),
    about: "For driver kubernetes: port on which this server listens for pods.",
  },
  kube_server_cidr: {
    env: "BERTH_KUBE_SERVER_CIDR",
    schema: text,
    about: "For driver kubernetes: addresses of servers outside the cluster, for the network policy.",
  },
  kube_runtime_class: {
    env: "BERTH_KUBE_RUNTIME_CLASS",
    schema: text,
    about: "For driver kubernetes: runtime class of pods, such as gvisor or kata.",
  },
  kube_storage_class: {
    env: "BERTH_KUBE_STORAGE_CLASS",
    schema: text,
    about: "For driver kubernetes: storage class of volumes; absent = the cluster's default.",
  },
  kube_pull_secrets: {
    env: "BERTH_KUBE_PULL_SECRETS",
    schema: list.default([]),
    about: "For driver kubernetes: Secrets with which the cluster pulls images of all workspaces.",
  },
  kube_user_namespaces: {
    env: "BERTH_KUBE_USER_NAMESPACES",
    schema: flag.default(false),
    about: "For driver kubernetes: pods with user namespaces (hostUsers: false).",
  },
  kube_pool_size: {
    env: "BERTH_KUBE_POOL_SIZE",
    schema: z.coerce.number().int().min(0).max(100).default(1),
    about: "For driver kubernetes: pods kept ready for each size of sandbox that is in demand; 0 = none.",
  },
} as const;

/** Settings that have no meaning with another driver. Kubernetes itself sets the others in every pod. */
export const KUBE_ONLY = ["kube_namespace", "kube_image", "kube_base_image", "kube_doors"] as const;

type Values = { [Name in keyof typeof kubeSettings]: z.output<(typeof kubeSettings)[Name]["schema"]> };

/** As the driver takes them. */
export const kubernetesOf = (config: Values) => ({
  kubeconfig: config.kube_config,
  apiHost: config.kube_api_host,
  apiPort: config.kube_api_port,
  namespace: config.kube_namespace,
  image: config.kube_image,
  baseImage: config.kube_base_image,
  instance: config.kube_instance,
  doors: config.kube_doors,
  doorPort: config.kube_door_port,
  serverCidr: config.kube_server_cidr,
  runtimeClass: config.kube_runtime_class,
  storageClass: config.kube_storage_class,
  pullSecrets: config.kube_pull_secrets,
  userNamespaces: config.kube_user_namespaces,
  poolSize: config.kube_pool_size,
});
