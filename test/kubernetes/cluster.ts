/** A cluster of the test's own, and drivers of it. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findBun } from "../../src/lib/bun-program.ts";
import type { Candidate } from "../../src/node/conformance/conformance.ts";
import type { Harness } from "../../src/node/conformance/harness.ts";
import {
  type KubernetesDriver,
  type KubernetesDriverOptions,
  openKubernetesDriver,
} from "../../src/node/drivers/kubernetes/kubernetes-driver.ts";
import { closeAtEnd } from "../closing.ts";
import { freePort } from "../free-port.ts";
import { shellHarness } from "../local/shell-harness.ts";
import { sandboxdBinary } from "../sandboxd-binary.ts";
import { API_TOKEN, ApiServer } from "./api-server.ts";
import { Kubelet, NAMESPACE } from "./kubelet.ts";

/** Why the suites cannot run; null when they can. */
export const kubernetesMissing: string | null =
  process.platform !== "linux"
    ? "needs Linux"
    : findBun() === null
      ? "needs Bun: npm install --include=optional"
      : spawnSync("unshare", [
            ...(process.getuid?.() === 0 ? [] : ["--map-root-user"]),
            "--mount",
            "--pid",
            "--fork",
            "true",
          ]).status === 0
        ? null
        : "needs root or user namespaces";

export const BERTH_IMAGE = "registry.example/berth:1";
export const BASE_IMAGE = "registry.example/base:1";

/** An image whose USER is www-data. */
export const USER_IMAGE = "registry.example/served:1";
export const PRIVATE_IMAGE = "private.example/team/tool:1";
export const PRIVATE_LOGIN = ["reader", "s3:cret"] as const;

export interface Cluster {
  api: ApiServer;
  kubelet: Kubelet;
  kubeconfig: string;
  open(options?: Partial<KubernetesDriverOptions>): Promise<KubernetesDriver>;
  stop(): Promise<void>;
}

export async function startCluster(): Promise<Cluster> {
  const api = new ApiServer();
  const dir = mkdtempSync(join(tmpdir(), "berth-cluster-"));
  const kubelet = new Kubelet(api, {
    [BERTH_IMAGE]: { files: { "/opt/berth/sandboxd": await sandboxdBinary() }, env: {} },
    [USER_IMAGE]: { files: {}, env: { HOME: "/root" }, user: "33:33", workDir: "/var/tmp" },
    [PRIVATE_IMAGE]: { files: {}, env: { FROM_IMAGE: "private" }, login: PRIVATE_LOGIN.join(":") },
    [BASE_IMAGE]: { files: {}, env: { FROM_IMAGE: "yes", HOME: "/root" } },
  });
  await api.start();
  await kubelet.start();
  const kubeconfig = join(dir, "kubeconfig");
  writeFileSync(kubeconfig, JSON.stringify(configOf(api.url)));
  const drivers = new Set<KubernetesDriver>();
  const stop = async (): Promise<void> => {
    closed();
    for (const driver of drivers) await driver.stop("keep");
    await kubelet.stop();
    await api.stop();
    rmSync(dir, { recursive: true, force: true });
  };
  const closed = closeAtEnd(stop);
  return {
    api,
    kubelet,
    kubeconfig,
    stop,
    async open(options = {}) {
      const doorPort = options.doorPort ?? (await freePort());
      const driver = await openKubernetesDriver({
        ...{ kubeconfig, brand: "berth", node: "here", image: BERTH_IMAGE, baseImage: BASE_IMAGE },
        ...{ namespace: NAMESPACE, doorPort, doors: `127.0.0.1:${doorPort}` },
        ...options,
      });
      drivers.add(driver);
      return driver;
    },
  };
}

const configOf = (server: string) => ({
  "current-context": "test",
  contexts: [{ name: "test", context: { cluster: "test", user: "test" } }],
  clusters: [{ name: "test", cluster: { server } }],
  users: [{ name: "test", user: { token: API_TOKEN } }],
});

export const kubernetesCandidate = (cluster: () => Cluster): Candidate => ({
  capabilities: ["freezing", "volumes", "resizing"],
  // The first sandbox of a size is made for its owner, and later ones come from the pool where it has one.
  open: () => harness(cluster(), { instance: "one", poolSize: 1 }),
});

async function harness(cluster: Cluster, given: Partial<KubernetesDriverOptions>): Promise<Harness> {
  const doorPort = await freePort();
  const options = { ...given, doorPort, doors: `127.0.0.1:${doorPort}` };
  return shellHarness({
    open: () => cluster.open(options),
    neighbour: () => harness(cluster, { instance: "two", node: "there" }),
  });
}
