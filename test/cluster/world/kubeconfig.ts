/** Who may do what: tokens that the API server knows, and files with which programs present them. */
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { API_URL } from "./addresses.ts";

export interface User {
  name: string;
  group: string;
}

export interface Access {
  /** Of the kubeconfig. */
  path: string;
  token: string;
}

export const ADMIN: User = { name: "admin", group: "system:masters" };
export const CONTROLLERS: User = { name: "system:kube-controller-manager", group: "system:masters" };
export const SCHEDULER: User = { name: "system:kube-scheduler", group: "system:masters" };
export const kubeletUser = (node: string): User => ({ name: `system:node:${node}`, group: "system:nodes" });

/** Writes the table of tokens; the answer writes a kubeconfig for one of the users. */
export function writeTokens(dir: string, caFile: string, users: readonly User[]): (user: User) => Access {
  const tokens = new Map(users.map(({ name }) => [name, randomBytes(24).toString("hex")]));
  const lines = users.map(({ name, group }) => `${tokens.get(name)},${name},${name},"${group}"`);
  writeFileSync(join(dir, "tokens.csv"), `${lines.join("\n")}\n`, { mode: 0o600 });
  return ({ name }) => {
    const path = join(dir, `${name.replaceAll(":", "-")}.kubeconfig`);
    const token = tokens.get(name) ?? "";
    writeFileSync(path, JSON.stringify(kubeconfig(caFile, token)), { mode: 0o600 });
    return { path, token };
  };
}

/** JSON is YAML, too. */
const kubeconfig = (caFile: string, token: string): object => ({
  apiVersion: "v1",
  kind: "Config",
  clusters: [{ name: "test", cluster: { server: API_URL, "certificate-authority": caFile } }],
  users: [{ name: "test", user: { token } }],
  contexts: [{ name: "test", context: { cluster: "test", user: "test" } }],
  "current-context": "test",
});
