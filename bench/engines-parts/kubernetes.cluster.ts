/** Runs inside the namespaces of a cluster, and writes its findings as one line of JSON. */
import { openKubernetesDriver } from "../../src/node/drivers/kubernetes/kubernetes-driver.ts";
import { NODE_IP } from "../../test/cluster/world/addresses.ts";
import { BERTH_IMAGE_NAME, importBerthImage } from "../../test/cluster/world/berth-image.ts";
import { startCluster } from "../../test/cluster/world/cluster.ts";
import { type Findings, measureCommands, measureDriver } from "./start.ts";

const KUBECTL_RUN = "kubectl run";
const NAMESPACE = "default";
const DOOR_PORT = 8981;

const { BERTH_CLUSTER_DIR: dir = "", BERTH_CLUSTER_CGROUP: cgroup = "" } = process.env;
const cluster = await startCluster(dir, cgroup);
try {
  await importBerthImage(dir);
  const { kubeconfig, kubectl } = cluster;
  const measured: Findings = [];
  for (const [name, poolSize] of [
    ["kubernetes, warm", 2],
    ["kubernetes, cold", 0],
  ] as const) {
    const driver = await openKubernetesDriver({
      ...{ kubeconfig, namespace: NAMESPACE, image: BERTH_IMAGE_NAME, brand: "berth", poolSize },
      ...{ doors: `${NODE_IP}:${DOOR_PORT}`, doorPort: DOOR_PORT, serverCidr: `${NODE_IP}/32` },
    });
    measured.push(await measureDriver({ name, against: KUBECTL_RUN, driver, pooled: poolSize > 0 }));
    await driver.stop();
  }
  const plain = ["--image", BERTH_IMAGE_NAME, "--image-pull-policy=Never", "--restart=Never"];
  await kubectl("run", "there", ...plain, "--command", "--", "sleep", "100000");
  await kubectl("wait", "--for=condition=Ready", "pod/there", "--timeout=300s");
  let count = 0;
  const reference = await measureCommands({
    name: KUBECTL_RUN,
    create: () =>
      kubectl("run", `bench-${count++}`, ...plain, "--attach", "--rm", "--quiet", "--command", "--", "true"),
    exec: () => kubectl("exec", "there", "--", "true"),
  });
  console.log(JSON.stringify([...measured, reference] satisfies Findings));
} finally {
  await cluster.stop();
}
