/**
 * Names of the platform's own cookies, for the rooms that set them and the gateway, which hides them from workloads.
 */

/** Begins the name of every platform cookie, after a prefix that only browsers interpret. */
export const cookieMark = (brand: string): string => `${brand.toLowerCase()}_`;

/** Browsers accept such a cookie only from its own host over TLS, for all paths: no other host can replace it. */
export const HOST_PREFIX = "__Host-";

/** Cookie name prefixes; browsers compare them case-insensitively. */
const PREFIX = /^__(?:host-http|host|secure|http)-/i;

export const isPlatformCookie = (name: string, mark: string): boolean =>
  name.replace(PREFIX, "").toLowerCase().startsWith(mark);
