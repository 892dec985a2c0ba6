/**
 * Lets the programs of a workload trust the authority of its workspace, where the workload has routes: a folder with
 * the certificates in the forms that programs read, and the variables that lead programs there.
 */
import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { getCACertificates } from "node:tls";
import { TRUST_DIR, TRUST_FILES } from "../../contract/sandbox-wire.ts";
import { removeTree } from "../../lib/remove-tree.ts";
import { javaTrustStore } from "../../lib/x509/java-trust-store.ts";
import { need } from "../../node/capabilities/need.ts";
import type { Mount } from "../../node/workload.ts";
import type { Resource } from "../../store/resources/resource.ts";
import type { Deps } from "../port.ts";
import { networkOf } from "./network.ts";

const authority = `${TRUST_DIR}/${TRUST_FILES.authority}`;
const bundle = `${TRUST_DIR}/${TRUST_FILES.bundle}`;

/** NODE_EXTRA_CA_CERTS makes every start of Node about 100 ms slower, so workloads without routes do not get it. */
const TRUST_ENV = {
  NODE_EXTRA_CA_CERTS: authority,
  DENO_CERT: authority,
  // OpenSSL, Go, Ruby, and Python's own module.
  SSL_CERT_FILE: bundle,
  REQUESTS_CA_BUNDLE: bundle,
  CURL_CA_BUNDLE: bundle,
  GIT_SSL_CAINFO: bundle,
  PIP_CERT: bundle,
  NPM_CONFIG_CAFILE: bundle,
  AWS_CA_BUNDLE: bundle,
  GRPC_DEFAULT_SSL_ROOTS_FILE_PATH: bundle,
  JDK_JAVA_OPTIONS: `-Djavax.net.ssl.trustStore=${TRUST_DIR}/${TRUST_FILES.java}`,
};

interface Trust {
  env: Record<string, string>;
  mounts: Mount[];
}

export const hasRoutes = ({ spec }: Pick<Resource, "spec">): boolean =>
  (networkOf(spec).proxy?.routing?.length ?? 0) > 0;

interface TrustDeps {
  driver: Pick<Deps["driver"], "name" | "capability">;
  authorities: Pick<Deps["authorities"], "trusted">;
  blobs: Pick<Deps["blobs"], "makeWorkFolder">;
}

export async function trustOf(resource: Pick<Resource, "workspace" | "spec">, deps: TrustDeps): Promise<Trust> {
  if (!hasRoutes(resource)) return { env: {}, mounts: [] };
  const own = await deps.authorities.trusted(resource.workspace);
  // Variables such as SSL_CERT_FILE replace a program's authorities, so the file has all of them.
  const all = [...getCACertificates("default"), ...own];
  const drive = `trust-${createHash("sha256").update(all.join()).digest("hex").slice(0, 24)}`;
  const drives = await need(deps.driver, "drives");
  if ((await drives.bytes(drive)) === null) {
    const folder = await deps.blobs.makeWorkFolder();
    try {
      await writeFile(join(folder, TRUST_FILES.authority), own.join(""));
      await writeFile(join(folder, TRUST_FILES.bundle), all.map((pem) => `${pem.trim()}\n`).join(""));
      await writeFile(join(folder, TRUST_FILES.java), javaTrustStore(all));
      await drives.create(drive, { from: folder });
    } finally {
      await removeTree(folder);
    }
  }
  return { env: TRUST_ENV, mounts: [{ source: { drive }, path: TRUST_DIR, readOnly: true, platform: true }] };
}
