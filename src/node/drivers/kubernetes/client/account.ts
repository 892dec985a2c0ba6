/** Who this server is to a Kubernetes API server: the service account of its pod, or the current context of a kubeconfig. */
import { existsSync, readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { parse } from "yaml";
import { z } from "zod";
import { PlatformError } from "../../../../contract/errors.ts";

export interface Account {
  /** Where the API server is, as `https://HOST:PORT` with the path before its own paths. */
  server: string;
  /** The namespace that the account names; undefined where it names none. */
  namespace: string | undefined;
  tls: { ca?: string; cert?: string; key?: string; rejectUnauthorized?: boolean; servername?: string };
  /** The bearer token of this moment; undefined for an account that a certificate proves. */
  token(): Promise<string | undefined>;
}

/** Folder that a pod's service account is mounted at. */
const POD_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";

export interface AccountSource {
  /** File of a kubeconfig; undefined: the service account of this pod. */
  kubeconfig?: string | undefined;
  /** Address that the cluster tells every pod. */
  host?: string | undefined;
  port?: string | undefined;
  /** Default: where every pod has it. */
  folder?: string;
}

export const openAccount = ({ kubeconfig, host, port, folder = POD_ACCOUNT }: AccountSource): Account =>
  kubeconfig === undefined ? podAccount(folder, host, port) : kubeconfigAccount(kubeconfig);

function podAccount(folder: string, host: string | undefined, port: string | undefined): Account {
  const tokenFile = join(folder, "token");
  if (!host || !existsSync(tokenFile))
    throw refused(
      `This server is in no pod with a service account (${tokenFile}). Set KUBECONFIG to a kubeconfig file.`,
    );
  const namespaceFile = join(folder, "namespace");
  return {
    server: `https://${host.includes(":") ? `[${host}]` : host}:${port ?? "443"}`,
    namespace: existsSync(namespaceFile) ? readFileSync(namespaceFile, "utf8").trim() : undefined,
    tls: { ca: readFileSync(join(folder, "ca.crt"), "utf8") },
    token: () => tokenIn(tokenFile),
  };
}

/** Read at every use: the kubelet replaces the file before the token ends. */
const tokenIn = async (file: string): Promise<string> => (await readFile(file, "utf8")).trim();

const named = <Inner extends z.ZodType>(key: string, inner: Inner) =>
  z.array(z.object({ name: z.string(), [key]: inner.nullish() })).nullish();

const clusterSchema = z.object({
  server: z.string(),
  "certificate-authority": z.string().optional(),
  "certificate-authority-data": z.string().optional(),
  "insecure-skip-tls-verify": z.boolean().optional(),
  "tls-server-name": z.string().optional(),
  "proxy-url": z.string().optional(),
});
const userSchema = z.object({
  token: z.string().optional(),
  tokenFile: z.string().optional(),
  "client-certificate": z.string().optional(),
  "client-certificate-data": z.string().optional(),
  "client-key": z.string().optional(),
  "client-key-data": z.string().optional(),
  username: z.string().optional(),
  exec: z.unknown().optional(),
  "auth-provider": z.unknown().optional(),
});
const contextSchema = z.object({ cluster: z.string(), user: z.string().optional(), namespace: z.string().optional() });
const fileSchema = z.object({
  "current-context": z.string().optional(),
  clusters: named("cluster", z.unknown()),
  users: named("user", z.unknown()),
  contexts: named("context", z.unknown()),
});

function kubeconfigAccount(file: string): Account {
  const folder = dirname(resolve(file));
  let config: z.output<typeof fileSchema>;
  try {
    config = fileSchema.parse(parse(readFileSync(file, "utf8")));
  } catch (cause) {
    throw refused(`The kubeconfig ${file} cannot be read.`, cause);
  }
  const entry = (list: "clusters" | "users" | "contexts", key: string, name: string | undefined): unknown =>
    config[list]?.find((each) => each.name === name)?.[key];
  const read = <Schema extends z.ZodType>(schema: Schema, value: unknown, what: string): z.output<Schema> => {
    const parsed = schema.safeParse(value);
    if (!parsed.success) throw refused(`The kubeconfig ${file} has no usable ${what}.`);
    return parsed.data;
  };
  const context = read(contextSchema, entry("contexts", "context", config["current-context"]), "current context");
  const cluster = read(clusterSchema, entry("clusters", "cluster", context.cluster), `cluster '${context.cluster}'`);
  const user = read(userSchema, entry("users", "user", context.user) ?? {}, `user '${context.user}'`);
  for (const unusable of ["exec", "auth-provider", "username"] as const)
    if (user[unusable] !== undefined)
      throw refused(
        `The user '${context.user}' of the kubeconfig ${file} signs in by '${unusable}', which Berth does not do. Use a token, a token file or a client certificate, such as those of a service account.`,
      );
  if (cluster["proxy-url"] !== undefined)
    throw refused(`The kubeconfig ${file} names a proxy, which Berth does not use.`);
  const text = (data: string | undefined, path: string | undefined): string | undefined =>
    data !== undefined
      ? Buffer.from(data, "base64").toString("utf8")
      : path === undefined
        ? undefined
        : readFileSync(resolve(folder, path), "utf8");
  const ca = text(cluster["certificate-authority-data"], cluster["certificate-authority"]);
  const cert = text(user["client-certificate-data"], user["client-certificate"]);
  const key = text(user["client-key-data"], user["client-key"]);
  const tokenFile = user.tokenFile === undefined ? undefined : resolve(folder, user.tokenFile);
  return {
    server: cluster.server.replace(/\/+$/, ""),
    namespace: context.namespace,
    tls: {
      ...(ca === undefined ? {} : { ca }),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
      ...(cluster["insecure-skip-tls-verify"] ? { rejectUnauthorized: false } : {}),
      ...(cluster["tls-server-name"] === undefined ? {} : { servername: cluster["tls-server-name"] }),
    },
    token: async () => (tokenFile === undefined ? user.token : tokenIn(tokenFile)),
  };
}

const refused = (message: string, cause?: unknown): PlatformError =>
  new PlatformError("unavailable", message, cause === undefined ? {} : { cause });
