/** Certificates of names, for TLS handshakes: the names in memory, and the secure contexts of those that were asked for. */
import { createSecureContext, type SecureContext } from "node:tls";
import type { Running } from "../lib/lifecycle.ts";
import { CERTIFICATE_TOPIC } from "../store/certificates.ts";
import type { Store } from "../store/store.ts";

export interface CertificateTable extends Running {
  /** The certificate for a host, exact or by a wildcard; undefined where there is none. */
  contextOf(host: string): SecureContext | undefined;
  /** Resolves when the certificates are known. */
  opened(): Promise<void>;
}

export function createCertificateTable({ store }: { store: Store }): CertificateTable {
  const contexts = new Map<string, SecureContext>();
  let last: Promise<void> = Promise.resolve();

  async function readAll(): Promise<void> {
    const names = new Set(
      (await store.certificates.list()).filter(({ chain }) => chain !== "").map(({ name }) => name),
    );
    for (const name of contexts.keys()) if (!names.has(name)) contexts.delete(name);
    // A certificate that cannot be used is one domain's trouble and not that of the others.
    for (const name of names) await readOne(name).catch(() => {});
  }

  async function readOne(name: string): Promise<void> {
    const found = await store.certificates.credential(name);
    if (!found) contexts.delete(name);
    else contexts.set(name, createSecureContext({ cert: found.certificate, key: found.key }));
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
    contextOf: (host) => contexts.get(host) ?? contexts.get(host.replace(/^[^.]+/, "*")),
    opened: () => next(readAll),
    async stop() {
      unsubscribe();
      await last;
    },
  };
}
