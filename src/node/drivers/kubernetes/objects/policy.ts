/** The network policy of an installation: servers reach the gates of workloads, workloads reach the doors of servers. */
import type { KubeClient } from "../client/kube-client.ts";
import { GATE_PORT } from "../settings.ts";
import { anySchema } from "./answers.ts";
import { LABEL, labelsOf, policyName } from "./names.ts";

export interface PolicyOptions {
  client: KubeClient;
  namespace: string;
  instance: string;
  /** Port of the servers' doors, as their pods have it. */
  doorPort: number;
  /** Namespace of the servers' pods. */
  serverNamespace: string;
  /** Addresses of servers outside the cluster. */
  serverCidr?: string | undefined;
}

/** Made, or changed into what this version asks for, before the first pod. */
export async function applyPolicy(options: PolicyOptions): Promise<void> {
  const { client, namespace } = options;
  const path = `/apis/networking.k8s.io/v1/namespaces/${namespace}/networkpolicies`;
  const body = policyBody(options);
  const { made } = await client.create(anySchema, path, body);
  if (!made) await client.edit(anySchema, `${path}/${body.metadata.name}`, () => ({ spec: body.spec }));
}

export function policyBody({ namespace, serverNamespace, instance, doorPort, serverCidr }: PolicyOptions) {
  const selected = (role: string) => ({
    podSelector: { matchLabels: { [LABEL.instance]: instance, [LABEL.role]: role } },
  });
  // Without a namespace a selector means that of the policy.
  const elsewhere = { namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": serverNamespace } } };
  const server = { ...(serverNamespace === namespace ? {} : elsewhere), ...selected("server") };
  const servers = [server, ...(serverCidr === undefined ? [] : [{ ipBlock: { cidr: serverCidr } }])];
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    metadata: { name: policyName(instance), labels: labelsOf(instance, "policy") },
    spec: {
      ...selected("workload"),
      policyTypes: ["Ingress", "Egress"],
      ingress: [{ from: servers, ports: [{ protocol: "TCP", port: GATE_PORT }] }],
      egress: [{ to: servers, ports: [{ protocol: "TCP", port: doorPort }] }],
    },
  };
}
