/**
 * Tells a client without credentials where to read who issues them (RFC 9728). The document must name the address that
 * the client called: below the platform's URL for path addresses, on the workload's own host otherwise.
 */

import { WORKLOADS } from "../contract/addresses.ts";
import { RESOURCE_METADATA, type ResourceMetadata, resourceMetadata } from "../contract/protected-resource.ts";
import type { Downstream } from "../http/downstream.ts";
import type { WorkloadRoute } from "../http/route.ts";
import type { Challenge, GatewayDeps, Workload } from "./deps.ts";

/** Path and host are written into a response header and into URLs that clients call. */
const PLAIN_PATH = /^[\w./~%-]{1,1024}$/;
const PLAIN_HOST = /^[\w.-]{1,255}(:\d{1,5})?$/;

export function challenge(
  deps: GatewayDeps,
  down: Downstream,
  route: WorkloadRoute,
  error = "",
): ReturnType<Challenge> {
  const origin = originOf(deps, down, route);
  const path = pathOf(`${route.prefix}${route.path}`);
  if (origin === null || !PLAIN_PATH.test(path)) return undefined;
  const address = `${origin}${RESOURCE_METADATA}${path === "/" ? "" : path}`;
  return { headers: { "www-authenticate": `Bearer resource_metadata="${address}"${error}` } };
}

/** The document of a private workload that has a host name of its own; null for every other request. */
export function metadataFor(
  deps: GatewayDeps,
  down: Downstream,
  route: WorkloadRoute,
  workload: Workload,
): ResourceMetadata | null {
  if ((route.to !== "label" && route.to !== "domain") || !route.path.startsWith(RESOURCE_METADATA)) return null;
  // A public workload owns this path and may issue its own credentials.
  if (workload.public || workload.preview !== null || down.method !== "GET") return null;
  const rest = pathOf(route.path).slice(RESOURCE_METADATA.length);
  const origin = originOf(deps, down, route);
  if (origin === null || (rest !== "" && !rest.startsWith("/"))) return null;
  return resourceMetadata(deps.issuer(), `${origin}${rest}`, [WORKLOADS[workload.kind].scope]);
}

function originOf(deps: GatewayDeps, down: Downstream, route: WorkloadRoute): string | null {
  if (route.to === "workload") return deps.issuer();
  if (route.to !== "label" && route.to !== "domain") return null;
  const host = down.host ?? "";
  return PLAIN_HOST.test(host) ? `${new URL(deps.issuer()).protocol}//${host.toLowerCase()}` : null;
}

const pathOf = (target: string): string => target.split("?", 1)[0] ?? "";
