/**
 * Which hosts a browser counts as one site, whose hosts share cookies. Browsers use the public suffix list; this file
 * only knows the usual shapes of such names, so the answer is good for a warning and not for a security decision.
 */

/** Second-level labels under which country registries register names: `co.uk`, `com.au`. */
const REGISTRY = /^(?:ac|co|com|edu|gov|net|org)$/;

export function siteOf(host: string): string {
  if (/^[\d.]+$|:/.test(host)) return host;
  const labels = host.split(".");
  if (labels.at(-1) === "localhost") return labels.slice(-2).join(".");
  const isBelowCountry = labels.at(-1)?.length === 2 && REGISTRY.test(labels.at(-2) ?? "");
  return labels.slice(isBelowCountry ? -3 : -2).join(".");
}

/** Names and addresses that mean the local machine. */
export const isLoopbackName = (host: string): boolean =>
  host === "localhost" || host.endsWith(".localhost") || host === "[::1]" || /^127(?:\.\d{1,3}){3}$/.test(host);
