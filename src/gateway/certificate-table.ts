/** Certificates of names, for TLS handshakes: the names in memory, and the secure contexts of those that were asked for. */
import type { SecureContext } from "node:tls";
import { NamedContexts, type NamedContextsOptions } from "../http/tls/named-contexts.ts";
import type { Running } from "../lib/lifecycle.ts";
import type { Credential } from "../lib/x509/certificate.ts";
import { CERTIFICATE_TOPIC } from "../store/certificates.ts";
import type { Store } from "../store/store.ts";

export interface CertificateTable extends Running {
  /** The certificate for a host, exact or by a wildcard; undefined where there is none. */
  contextOf(host: string): SecureContext | undefined;
  /** All of them, by name. */
  credentials(): [name: string, credential: Credential][];
  /** Calls the listener with every later certificate; null = the name has none any more. */
  onCredential(listener: (name: string, credential: Credential | null) => void): void;
  /** Resolves when the certificates are known. */
  opened(): Promise<void>;
}

export interface CertificateTableDeps extends NamedContextsOptions {
  store: Store;
}

export function createCertificateTable({ store, ...options }: CertificateTableDeps): CertificateTable {
  const contexts = new NamedContexts(options);
  const credentials = new Map<string, Credential>();
  let told: (name: string, credential: Credential | null) => void = () => {};
  let last: Promise<void> = Promise.resolve();

  async function readAll(): Promise<void> {
    const names = new Set(
      (await store.certificates.list()).filter(({ chain }) => chain !== "").map(({ name }) => name),
    );
    for (const name of contexts.names()) if (!names.has(name)) forget(name);
    // A certificate that cannot be used is one domain's trouble and not that of the others.
    for (const name of names) await readOne(name).catch(() => {});
  }

  async function readOne(name: string): Promise<void> {
    const found = await store.certificates.credential(name);
    if (!found) return forget(name);
    const credential = { certificate: found.certificate, key: found.key };
    contexts.set(name, credential);
    credentials.set(name, credential);
    told(name, credential);
  }

  function forget(name: string): void {
    contexts.delete(name);
    if (credentials.delete(name)) told(name, null);
  }

  /** One after the other, so that an older read does not replace a newer one. A failed read leaves what was there. */
  const next = (read: () => Promise<void>): Promise<void> => {
    last = last.then(read).catch(() => {});
    return last;
  };
  const unsubscribe = store.database.onChange(({ topic, key }) => {
    if (topic === CERTIFICATE_TOPIC) void next(() => readOne(key));
    else if (topic === "resync") void next(readAll);
  });

  return {
    contextOf: (host) => contexts.of(host),
    credentials: () => [...credentials],
    onCredential(listener) {
      told = listener;
    },
    opened: () => next(readAll),
    async stop() {
      unsubscribe();
      await last;
    },
  };
}
