/**
 * Host names of the platform itself: of its address, of its pages, and all at or below the domain of workloads. They are
 * the platform's also when a workspace has verified a domain above them: no workspace has a domain, a host or a
 * certificate there.
 */

export interface PlatformHosts {
  domain?: string | undefined;
  publicHost?: string | undefined;
  consoleHost?: string | undefined;
}

/** `host` in lower case; a wildcard (`*.apps.example.net`) is the platform's where all names of it are. */
export function isPlatformHost(host: string, { domain, publicHost, consoleHost }: PlatformHosts): boolean {
  if (host === publicHost || host === consoleHost) return true;
  return domain !== undefined && (host === domain || host.endsWith(`.${domain}`));
}

/** Names of the certificates that may be shown for a host, the exact one first. */
export function certificateNamesFor(host: string, own: PlatformHosts): string[] {
  const wildcard = host.replace(/^[^.]+/, "*");
  // A wildcard of a workspace's domain covers the platform's names below that domain, too.
  return isPlatformHost(host, own) && !isPlatformHost(wildcard, own) ? [host] : [host, wildcard];
}
