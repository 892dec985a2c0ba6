/**
 * On loopback a preview or application that a browser opens in the path form is shown at a host of its own below
 * localhost, where it has an origin of its own. Its address stays the path form: programs do not resolve such names.
 */

import { DNS_LABEL_MAX, LOOPBACK_DOMAIN, PREVIEW_LABEL, workloadLabel } from "../contract/addresses.ts";
import type { Downstream } from "../http/downstream.ts";
import type { WorkloadRoute } from "../http/route.ts";
import { hostName } from "../http/route.ts";
import { isLoopbackName } from "../lib/network/site.ts";
import type { GatewaySettings, Workload } from "./deps.ts";

/** URL to redirect the browser to; null when the request is served here. */
export function ownOrigin(
  settings: GatewaySettings,
  down: Downstream,
  route: WorkloadRoute,
  workload: Workload,
): string | null {
  if (!settings.isLoopback || settings.domain !== undefined || settings.pathPages === "trusted") return null;
  if (route.prefix === "" || down.header("sec-fetch-mode") !== "navigate") return null;
  if (down.method !== "GET" && down.method !== "HEAD") return null;
  const host = hostOf(route, workload);
  const [, port = ""] = /:(\d+)$/.exec(down.host ?? "") ?? [];
  if (host === null || !isLoopbackName(hostName(down.host ?? ""))) return null;
  return `${down.secure ? "https" : "http"}://${host}.${LOOPBACK_DOMAIN}${port === "" ? "" : `:${port}`}${route.path}`;
}

function hostOf(route: WorkloadRoute, workload: Workload): string | null {
  if (route.to === "preview") return `${route.id.toLowerCase()}.${PREVIEW_LABEL}`;
  if (route.to !== "workload" || route.kind !== "application") return null;
  const label = workload.label ?? workloadLabel("application", workload);
  return label === "" || label.length > DNS_LABEL_MAX ? null : label;
}
