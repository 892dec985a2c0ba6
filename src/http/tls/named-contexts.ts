/** Certificates by name, ready for handshakes: for a host the exact one, or the wildcard of its domain. */
import { X509Certificate } from "node:crypto";
import { createSecureContext, type SecureContext } from "node:tls";
import { certificateNamesFor, isPlatformHost, type PlatformHosts } from "../../lib/network/platform-hosts.ts";
import type { Credential } from "../../lib/x509/certificate.ts";
import { asNode } from "./tls-server.ts";

export interface NamedContextsOptions {
  /** The platform's own names, for which no wildcard of a workspace counts. */
  own: PlatformHosts;
  /** Whether the operator's files hold the certificate for the platform's names; no other one is shown for them then. */
  hasOwnFiles: boolean;
  now(): number;
}

export class NamedContexts {
  readonly #options: NamedContextsOptions;
  readonly #byName = new Map<string, { context: SecureContext; untilMs: number }>();

  constructor(options: NamedContextsOptions) {
    this.#options = options;
  }

  names(): string[] {
    return [...this.#byName.keys()];
  }

  /** Throws for a certificate that TLS does not take; the name keeps the one before. */
  set(name: string, credential: Credential): void {
    const context = createSecureContext(asNode(credential));
    this.#byName.set(name, { context, untilMs: Date.parse(new X509Certificate(credential.certificate).validTo) });
  }

  delete(name: string): void {
    this.#byName.delete(name);
  }

  /** Undefined where the server's own certificate is shown. One that has expired only where there is no valid one. */
  of(host: string): SecureContext | undefined {
    const { own, hasOwnFiles, now } = this.#options;
    if (hasOwnFiles && isPlatformHost(host, own)) return undefined;
    const found = certificateNamesFor(host, own).flatMap((name) => this.#byName.get(name) ?? []);
    return (found.find(({ untilMs }) => untilMs > now()) ?? found[0])?.context;
  }
}
