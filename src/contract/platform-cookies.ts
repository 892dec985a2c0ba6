/** Names of the platform's own cookies: the rooms that set them and the gateway, which keeps workloads off them. */

/** What their names start with, behind a prefix that only browsers read. */
export const cookieMark = (brand: string): string => `${brand.toLowerCase()}_`;

/** Browsers keep such a cookie only when its own host set it over TLS, for all paths: no other host can replace it. */
export const HOST_PREFIX = "__Host-";

/** Browsers compare these without regard to case. */
const PREFIX = /^__(?:host-http|host|secure|http)-/i;

export const isPlatformCookie = (name: string, mark: string): boolean =>
  name.replace(PREFIX, "").toLowerCase().startsWith(mark);
