/** Addresses and names of services: kube-proxy, and a DNS server that asks the API server for every name. */
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { answerQuestion } from "../../dns-server.ts";
import { LIBRARIES } from "../parts/folder.ts";
import { NODE_IP, NODES, POD_RANGE } from "./addresses.ts";
import { Program } from "./program.ts";

export const CLUSTER_DOMAIN = "cluster.local";

export function startProxy(dir: string, kubeconfig: string): Program {
  const config = join(dir, "kube-proxy.yaml");
  const proxy = {
    apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
    kind: "KubeProxyConfiguration",
    mode: "nftables",
    hostnameOverride: NODES[0].name,
    clusterCIDR: POD_RANGE,
    clientConnection: { kubeconfig },
    conntrack: { maxPerCore: 0 },
  };
  writeFileSync(config, JSON.stringify(proxy));
  return new Program({ dir, name: "kube-proxy", args: ["--config", config], env: { LD_LIBRARY_PATH: LIBRARIES } });
}

export interface ServiceObject {
  metadata: { name: string; namespace: string };
  spec: { clusterIP: string };
}

/** Answers NAME.NAMESPACE.svc and the same with the domain of the cluster. */
export async function startDns(services: () => Promise<ServiceObject[]>): Promise<Socket> {
  const socket = createSocket("udp4");
  socket.on("message", async (query, from) => {
    const known = await services().catch(() => []);
    const reply = answerQuestion(query, (name, type) => {
      const [service, namespace, word] = name.replace(new RegExp(`\\.${CLUSTER_DOMAIN}$`), "").split(".");
      if (type !== "A" || word !== "svc") return [];
      return known
        .filter(({ metadata }) => metadata.name === service && metadata.namespace === namespace)
        .map(({ spec }) => spec.clusterIP);
    });
    socket.send(reply, from.port, from.address);
  });
  socket.bind(53, NODE_IP);
  await once(socket, "listening");
  return socket;
}
