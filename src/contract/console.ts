/**
 * The address of the platform's pages for people: a host of their own, which serves no workload, so that no page of a
 * workload ever has their origin. Without such a host the pages are at the public address, and pages of workloads there
 * are sandboxed (http/page-rules.ts).
 */

import { isLoopbackName, siteOf } from "../lib/network/site.ts";
import { hostsBelow } from "./addresses.ts";

const LABEL = "console";

export interface ConsoleBase {
  /** The address at which clients reach the platform; its port is unknown before the server listens. */
  publicUrl: string;
  domain?: string | undefined;
  /** The operator's setting. */
  consoleUrl?: string | undefined;
}

/** The origin of the pages, without a trailing slash. */
export function consoleUrl(base: ConsoleBase): string {
  if (base.consoleUrl !== undefined) return new URL(base.consoleUrl).origin;
  const { protocol, port, origin } = new URL(base.publicUrl);
  const host = consoleHost(base);
  return host === undefined ? origin : `${protocol}//${host}${port === "" ? "" : `:${port}`}`;
}

/** The host name that serves only the pages; undefined when the pages share the public address. */
export function consoleHost({ publicUrl, domain, consoleUrl: given }: ConsoleBase): string | undefined {
  if (given !== undefined) return new URL(given).hostname;
  if (domain !== undefined) return `${LABEL}.${domain}`;
  return isLoopbackName(new URL(publicUrl).hostname) ? `${LABEL}.localhost` : undefined;
}

/** Whether a browser sees the pages and workloads as one origin, as one site, or as neither (null). */
export function sharedWithWorkloads(base: ConsoleBase): "origin" | "site" | null {
  const pages = new URL(consoleUrl(base));
  const path = new URL(base.publicUrl);
  if (pages.hostname === path.hostname) return "origin";
  const workloads = [path.hostname, ...(base.domain === undefined ? [] : [base.domain])];
  return workloads.some((host) => siteOf(host) === siteOf(pages.hostname)) ? "site" : null;
}

/** Origins that previews have, as sources of a content security policy; never the origin of the pages themselves. */
export function previewOrigins(base: ConsoleBase): string[] {
  const { protocol, origin } = new URL(base.publicUrl);
  const below = `${protocol}//*.${hostsBelow(base)}`;
  return sharedWithWorkloads(base) === "origin" ? [below] : [origin, below];
}

export const SHARING_ADVICE = {
  origin: "people's pages and workloads share an origin: set BERTH_CONSOLE_URL to an address on a site of its own",
  site: "people's pages and workloads share a site, and with it cookies: set BERTH_CONSOLE_URL to an address on a site of its own",
} as const;
