/** The driver's conformance suite on a real cluster, with the rights that the chart gives to servers and no others. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, suite } from "node:test";
import { parseAllDocuments } from "yaml";
import { driverConformance } from "../../../src/node/conformance/conformance.ts";
import type { Harness } from "../../../src/node/conformance/harness.ts";
import { openKubernetesDriver } from "../../../src/node/drivers/kubernetes/kubernetes-driver.ts";
import { goldenFile } from "../../helm/renderings.ts";
import { shellHarness } from "../../local/shell-harness.ts";
import { API_URL, NODE_IP } from "../world/addresses.ts";
import { BERTH_IMAGE_NAME } from "../world/berth-image.ts";
import type { Cluster } from "../world/cluster.ts";

const NAMESPACE = "conformance";
const INSTANCES = { berth: 8981, other: 8991 };

export function conformance(get: () => Cluster): void {
  suite("on a real cluster", () => {
    let kubeconfig: string;
    before(async () => {
      kubeconfig = await restrictedAccount(get());
    });
    driverConformance("kubernetes", {
      capabilities: ["volumes", "freezing", "resizing"],
      // What a workload may use is reserved for it, and the nodes have the processors of this machine.
      limits: { memoryMb: 256, cpus: 0.2 },
      open: () => harness(() => kubeconfig, "berth"),
    });
  });
}

function harness(kubeconfig: () => string, instance: keyof typeof INSTANCES): Promise<Harness> {
  const port = INSTANCES[instance];
  const open = () =>
    openKubernetesDriver({
      ...{ kubeconfig: kubeconfig(), namespace: NAMESPACE, instance, image: BERTH_IMAGE_NAME, brand: "berth" },
      ...{ poolSize: 1, doors: `${NODE_IP}:${port}`, doorPort: port, serverCidr: `${NODE_IP}/32` },
    });
  return shellHarness({ open, neighbour: () => harness(kubeconfig, "other") });
}

interface Role {
  kind: string;
  rules: { resourceNames?: string[] }[];
}

/** The name of an object of the chart's instance, as each instance of the suite has it. */
const ofInstances = (name: string): string[] =>
  Object.keys(INSTANCES).map((instance) => name.replace(/^berth-/, `${instance}-`));

/** A service account with the rules of the chart's Role, for both instances. */
async function restrictedAccount({ dir, apply, kubectl, control }: Cluster): Promise<string> {
  const documents = parseAllDocuments(readFileSync(goldenFile("trial"), "utf8")).map((each) => each.toJS() as Role);
  const role = documents.find(({ kind }) => kind === "Role");
  const rules = role?.rules.map(({ resourceNames, ...rule }) => ({
    ...rule,
    ...(resourceNames ? { resourceNames: resourceNames.flatMap(ofInstances) } : {}),
  }));
  const metadata = { name: "servers", namespace: NAMESPACE };
  const rbac = { apiVersion: "rbac.authorization.k8s.io/v1", metadata };
  const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: metadata.name };
  await apply({ apiVersion: "v1", kind: "Namespace", metadata: { name: NAMESPACE } });
  await apply(
    { apiVersion: "v1", kind: "ServiceAccount", metadata },
    { ...rbac, kind: "Role", rules },
    { ...rbac, kind: "RoleBinding", roleRef, subjects: [{ kind: "ServiceAccount", ...metadata }] },
  );
  const token = (await kubectl("create", "token", metadata.name, "-n", NAMESPACE, "--duration=6h")).trim();
  const path = join(dir, "servers.kubeconfig");
  const config = {
    clusters: [{ name: "test", cluster: { server: API_URL, "certificate-authority": control.ca } }],
    users: [{ name: "servers", user: { token } }],
    contexts: [{ name: "test", context: { cluster: "test", user: "servers", namespace: NAMESPACE } }],
    "current-context": "test",
  };
  writeFileSync(path, JSON.stringify(config), { mode: 0o600 });
  return path;
}
