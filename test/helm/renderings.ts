/**
 * The chart rendered by Helm with a few sets of values. The results are kept in `golden/`, so that a change of the chart
 * shows as a change of objects. After a change run
 *
 *   node test/helm/renderings.ts
 *
 * which needs `helm` on the PATH, in BERTH_TEST_HELM, or among the parts that `npm run test:cluster` builds.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BIN } from "../cluster/parts/folder.ts";

export const CHART = join(import.meta.dirname, "../../deploy/helm/berth");
const GOLDEN = join(import.meta.dirname, "golden");
/** The chart's own default would be that of the program, which its builder chooses. */
const KUBERNETES = "1.36.0";

const KEYS = { secretKey: "k".repeat(32), apiKey: "a".repeat(16) };

/** Values that make every template and every branch of them speak at least once. */
export const CASES: Readonly<Record<string, object>> = {
  trial: { secrets: KEYS, database: { bundled: { enabled: true, password: "p".repeat(16) } } },
  ingress: {
    secrets: { existingSecret: "berth-keys" },
    database: { existingSecret: "berth-postgres", existingSecretKey: "url" },
    publicUrl: "https://apps.example.net",
    domain: "apps.example.net",
    consoleUrl: "https://console.example.com",
    ingress: { enabled: true, className: "nginx", tlsSecret: "berth-tls", annotations: { "example.net/body": "0" } },
    service: { annotations: { "example.net/pool": "berth" } },
    workloads: {
      ...{
        namespace: "berth-workloads",
        instance: "berth",
        image: "registry.example.net/base:1",
        pullSecrets: ["a", "b"],
      },
      ...{ runtimeClassName: "gvisor", storageClassName: "fast", userNamespaces: true, poolSize: 0 },
    },
    settings: { BERTH_LOG_DAYS: 3, BERTH_REGION: "eu" },
    extraEnv: [{ name: "BERTH_IDENTITY_PROVIDERS", valueFrom: { secretKeyRef: { name: "idp", key: "providers" } } }],
    serviceAccount: { create: false, name: "berth-servers" },
    image: { repository: "registry.example.net/berth", tag: "1.2.3", pullSecrets: ["registry"] },
    priorityClassName: "platform",
    podLabels: { team: "platform" },
    podAnnotations: { "example.net/scrape": "true" },
    nodeSelector: { "kubernetes.io/os": "linux" },
    tolerations: [{ key: "platform", operator: "Exists" }],
    affinity: { nodeAffinity: {} },
  },
  gateway: {
    secrets: KEYS,
    database: { url: "postgres://berth:secret@db.example.net:5432/berth" },
    publicUrl: "https://apps.example.net:8443",
    gateway: { enabled: true, parentRefs: [{ name: "public", namespace: "gateways" }] },
    serviceAccount: { annotations: { "example.net/role": "berth" } },
    networkPolicy: { enabled: false },
    podDisruptionBudget: { enabled: false },
  },
};

export function findHelm(): string | null {
  const candidates = [process.env.BERTH_TEST_HELM, "helm", join(BIN, "helm")];
  return candidates.find((path) => path && spawnSync(path, ["version"], { stdio: "ignore" }).status === 0) ?? null;
}

export const HELM_MISSING =
  "needs Helm 3: put helm on the PATH, name it in BERTH_TEST_HELM, or run `npm run test:cluster` once, which builds it with Go";

/** Runs helm on the chart with these values; throws with its words. */
export function helm(program: string, words: readonly string[], values: object): string {
  const dir = mkdtempSync(join(tmpdir(), "berth-helm-"));
  try {
    const file = join(dir, "values.json");
    writeFileSync(file, JSON.stringify(values));
    const args = [...words, "--values", file, "--kube-version", KUBERNETES, "--namespace", "platform"];
    const env = { PATH: process.env.PATH, HOME: dir, KUBECONFIG: "/dev/null" };
    return execFileSync(program, args, { encoding: "utf8", env, stdio: ["ignore", "pipe", "pipe"] });
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

export const render = (program: string, values: object): string => helm(program, ["template", "berth", CHART], values);

export const goldenFile = (name: string): string => join(GOLDEN, `${name}.yaml`);

/** Of the files that the golden ones were rendered from, in a file beside them. */
export const DIGEST_FILE = join(GOLDEN, "chart.sha256");

export function chartDigest(): string {
  const digest = createHash("sha256").update(JSON.stringify(CASES));
  for (const file of globSync("**/*.*", { cwd: CHART }).sort())
    digest.update(`\0${file}\0`).update(readFileSync(join(CHART, file)));
  return digest.digest("hex");
}

if (import.meta.main) {
  const program = findHelm();
  if (program === null) throw new Error(HELM_MISSING);
  for (const [name, values] of Object.entries(CASES)) writeFileSync(goldenFile(name), render(program, values));
  writeFileSync(DIGEST_FILE, `${chartDigest()}\n`);
  console.log(`rendered ${Object.keys(CASES).join(", ")}`);
}
