/**
 * Which hosts browsers take for one site: cookies of a site reach all its hosts. Browsers know a list of registries;
 * here the usual shapes of their names stand for it, so the answer is good for a warning and not for a decision.
 */

/** Second-level names below which countries register: `co.uk`, `com.au`. */
const REGISTRY = /^(?:ac|co|com|edu|gov|net|org)$/;

export function siteOf(host: string): string {
  if (/^[\d.]+$|:/.test(host)) return host;
  const labels = host.split(".");
  if (labels.at(-1) === "localhost") return labels.slice(-2).join(".");
  const isBelowCountry = labels.at(-1)?.length === 2 && REGISTRY.test(labels.at(-2) ?? "");
  return labels.slice(isBelowCountry ? -3 : -2).join(".");
}

/** Names and addresses that lead every machine to itself. */
export const isLoopbackName = (host: string): boolean =>
  host === "localhost" || host.endsWith(".localhost") || host === "[::1]" || /^127(?:\.\d{1,3}){3}$/.test(host);
