/** etcd, the API server, the controllers and the scheduler. */
import { generateKeyPairSync } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { get } from "node:https";
import { join } from "node:path";
import { API_PORT, ETCD_URL, NODE_IP, NODES, SERVICE_RANGE } from "./addresses.ts";
import { ADMIN, CONTROLLERS, kubeletUser, SCHEDULER, writeTokens } from "./kubeconfig.ts";
import { Program } from "./program.ts";
import { until } from "./until.ts";

export interface ControlPlane {
  etcd: Program;
  apiServer: Program;
  controllers: Program;
  scheduler: Program;
  /** File with the authority of the API server. */
  ca: string;
  /** Of an administrator. */
  token: string;
  /** Kubeconfig files. */
  admin: string;
  kubelet(node: string): string;
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
  const kubeconfig = writeTokens(dir, ca, [
    ADMIN,
    CONTROLLERS,
    SCHEDULER,
    ...NODES.map(({ name }) => kubeletUser(name)),
  ]);
  const { path: admin, token } = kubeconfig(ADMIN);

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
      return existsSync(ca) && (await askApi({ ca, token }, "/readyz"));
    }).then(() => {});
  await ready();
  const controllers = new Program({
    ...{ dir, name: "kube-controller-manager" },
    args: [
      ...["--kubeconfig", kubeconfig(CONTROLLERS).path, "--leader-elect=false", "--cert-dir", certificates],
      ...["--service-account-private-key-file", signing, "--root-ca-file", ca],
      // Volumes are folders of this machine.
      "--enable-hostpath-provisioner",
    ],
  });
  const scheduler = new Program({
    ...{ dir, name: "kube-scheduler" },
    args: ["--kubeconfig", kubeconfig(SCHEDULER).path, "--leader-elect=false", "--cert-dir", certificates],
  });
  const kubelet = (node: string): string => kubeconfig(kubeletUser(node)).path;
  return { etcd, apiServer, controllers, scheduler, ca, token, admin, kubelet, ready };
}

/** The answer to an administrator's GET; the certificate is checked as every client does. */
export function askApi({ ca, token }: Pick<ControlPlane, "ca" | "token">, path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}` };
    const options = { host: NODE_IP, port: API_PORT, path, headers, ca: readFileSync(ca), agent: false };
    const asked = get(options, (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
      answer.once("error", reject);
      answer.once("end", () => (answer.statusCode === 200 ? resolve(text) : reject(new Error(`${path}: ${text}`))));
    });
    asked.once("error", reject);
  });
}
