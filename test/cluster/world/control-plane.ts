/** etcd, the API server, the controllers and the scheduler. */
import { generateKeyPairSync } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { get } from "node:https";
import { join } from "node:path";
import { API_PORT, ETCD_URL, NODE_IP, SERVICE_RANGE } from "./addresses.ts";
import { ADMIN, CONTROLLERS, KUBELET, SCHEDULER, writeTokens } from "./kubeconfig.ts";
import { Program } from "./program.ts";
import { until } from "./until.ts";

export interface ControlPlane {
  etcd: Program;
  apiServer: Program;
  controllers: Program;
  scheduler: Program;
  /** Kubeconfig files. */
  admin: string;
  kubelet: string;
  /** Resolves when the API server takes requests. */
  ready(): Promise<void>;
}

export async function startControlPlane(dir: string): Promise<ControlPlane> {
  const certificates = join(dir, "certificates");
  mkdirSync(certificates);
  const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const [signing, checking] = [join(dir, "accounts.key"), join(dir, "accounts.pub")];
  writeFileSync(signing, privateKey.export({ type: "pkcs1", format: "pem" }), { mode: 0o600 });
  writeFileSync(checking, publicKey.export({ type: "spki", format: "pem" }));
  // The API server makes its certificate itself; the file also holds the authority that signed it.
  const ca = join(certificates, "apiserver.crt");
  const kubeconfig = writeTokens(dir, ca, [ADMIN, CONTROLLERS, SCHEDULER, KUBELET]);
  const admin = kubeconfig(ADMIN);

  const etcd = new Program({
    ...{ dir, name: "etcd", env: { ETCD_UNSUPPORTED_ARCH: process.arch === "arm64" ? "arm64" : "" } },
    args: [
      ...["--data-dir", join(dir, "etcd"), "--unsafe-no-fsync"],
      ...["--listen-client-urls", ETCD_URL, "--advertise-client-urls", ETCD_URL],
      ...["--listen-peer-urls", "http://127.0.0.1:2380"],
    ],
  });
  const apiServer = new Program({
    ...{ dir, name: "kube-apiserver" },
    args: [
      ...["--etcd-servers", ETCD_URL, "--cert-dir", certificates, "--secure-port", String(API_PORT)],
      ...["--advertise-address", NODE_IP, "--service-cluster-ip-range", SERVICE_RANGE],
      ...["--token-auth-file", join(dir, "tokens.csv"), "--authorization-mode", "Node,RBAC"],
      ...["--service-account-issuer", "https://kubernetes.default.svc", "--service-account-key-file", checking],
      ...["--service-account-signing-key-file", signing, "--kubelet-preferred-address-types", "InternalIP"],
    ],
  });
  const ready = (): Promise<void> =>
    until("the API server is ready", async () => {
      etcd.check();
      apiServer.check();
      return existsSync(ca) && (await isReady(ca));
    }).then(() => {});
  await ready();
  const controllers = new Program({
    ...{ dir, name: "kube-controller-manager" },
    args: [
      ...["--kubeconfig", kubeconfig(CONTROLLERS), "--leader-elect=false", "--cert-dir", certificates],
      ...["--service-account-private-key-file", signing, "--root-ca-file", ca],
      // Volumes are folders of this machine.
      "--enable-hostpath-provisioner",
    ],
  });
  const scheduler = new Program({
    ...{ dir, name: "kube-scheduler" },
    args: ["--kubeconfig", kubeconfig(SCHEDULER), "--leader-elect=false", "--cert-dir", certificates],
  });
  return { etcd, apiServer, controllers, scheduler, admin, kubelet: kubeconfig(KUBELET), ready };
}

/** `/readyz` is open to everybody; the certificate is checked as every client does. */
function isReady(caFile: string): Promise<boolean> {
  return new Promise((resolve) => {
    const options = { host: NODE_IP, port: API_PORT, path: "/readyz", ca: readFileSync(caFile), agent: false };
    const asked = get(options, (answer) => {
      answer.resume();
      resolve(answer.statusCode === 200);
    });
    asked.once("error", () => resolve(false));
  });
}
