/** What the kind of workload and the shape of a request decide: its limits, its identity headers, its cookies. */

import { GatewayError } from "../contract/gateway-errors.ts";
import type { Downstream } from "../http/downstream.ts";
import type { HeaderRules } from "../http/header-rules.ts";
import { lowerName } from "../http/http1/header-name.ts";
import type { WorkloadRoute } from "../http/route.ts";
import { clientAddress } from "../lib/network/proxies.ts";
import type { Admitted } from "./admit.ts";
import type { GatewayDeps, Workload } from "./deps.ts";
import type { ExchangeLimits } from "./forward.ts";
import { STICKY_TTL_MAX_SECONDS } from "./pick-revision.ts";

/** Whether the client's connection is encrypted, as far as the gateway can know. */
export function isSecure(rules: HeaderRules, down: Downstream): boolean {
  if (down.secure) return true;
  return down.fromNetwork && down.header("x-forwarded-proto") === "https" && rules.proxies.include(down.remoteAddress);
}

/** Where the client is: the other end of the connection, what the operator's proxies say of it, or its workload. */
export function addressOf(rules: HeaderRules, down: Downstream): string {
  const { remoteAddress, fromNetwork, workload, rawHeaders } = down;
  if (!fromNetwork) return clientAddress(undefined, undefined, rules.proxies, workload);
  if (!rules.proxies.include(remoteAddress)) return remoteAddress;
  // A proxy may add a field of its own behind the client's.
  const hops = rawHeaders.filter((_, at) => at % 2 === 1 && lowerName(rawHeaders[at - 1] ?? "") === "x-forwarded-for");
  return clientAddress(remoteAddress, hops.length > 0 ? hops.join(",") : undefined, rules.proxies);
}

export function cookieFor(
  names: { preview: string; revision: string },
  secure: boolean,
  route: WorkloadRoute,
  admitted: Admitted,
  pin: string | null,
): string | null {
  const path = `Path=${route.prefix === "" ? "/" : route.prefix}; HttpOnly`;
  if (admitted.previewCookie !== null) {
    // Previews are often shown in a frame of another site, where browsers keep only such a cookie.
    const site = secure ? "SameSite=None; Secure; Partitioned" : "SameSite=Lax";
    return `${names.preview}=${admitted.previewCookie}; ${path}; ${site}`;
  }
  if (pin === null) return null;
  const maxAge = Math.min(STICKY_TTL_MAX_SECONDS, admitted.workload.revisions?.stickyTtlSeconds ?? 0);
  return `${names.revision}=${pin}; ${path}; Max-Age=${maxAge}; SameSite=Lax${secure ? "; Secure" : ""}`;
}

export function identityLines(words: readonly string[], { principal }: Admitted): string {
  if (principal === null) return "";
  let lines = "";
  for (const word of words) {
    lines += `X-${word}-Subject-Id: ${headerSafe(principal.id)}\r\nX-${word}-Subject-Type: ${headerSafe(principal.type)}\r\n`;
    lines += `X-${word}-Auth-Method: ${headerSafe(principal.method)}\r\n`;
  }
  return lines;
}

const headerSafe = (text: string): string => text.replace(/[^\x20-\x7e]/g, "?").slice(0, 256);

export function limitsFor(deps: GatewayDeps, down: Downstream, { workload, path }: Admitted): ExchangeLimits {
  const limits = deps.settings.limits.of[workload.preview === null ? workload.kind : "preview"];
  const fileMax = deps.settings.limits.sandboxFileMax;
  if (fileMax === null || !writesFiles(down, workload, path)) return limits;
  const expansion = BODY_EXPANSION[/^[^;\s]*/.exec(down.header("content-type") ?? "")?.[0]?.toLowerCase() ?? ""];
  if (expansion === undefined) return limits;
  const bodyMax = fileMax * expansion + BODY_FRAME_BYTES;
  if (down.contentLength > bodyMax) {
    throw new GatewayError("REQUEST_ENTITY_TOO_LARGE", `One request may carry ${fileMax} bytes of a file.`);
  }
  return { ...limits, bodyMax };
}

/**
 * Body bytes per byte of file content: a JSON escape takes six. The sandbox itself counts the content. It parses JSON
 * and forms in memory; raw bodies are streamed and have no limit.
 */
const BODY_EXPANSION: Record<string, number | undefined> = { "application/json": 6, "multipart/form-data": 1 };
/** Room for names, permissions and form boundaries. */
const BODY_FRAME_BYTES = 64 * 1024;

const writesFiles = (down: Downstream, workload: Workload, path: string): boolean =>
  workload.kind === "sandbox" &&
  workload.door === "api" &&
  down.bodyFraming !== "none" &&
  /^\/filesystem(?:\/|%2f)/i.test(path);

const told = new WeakMap<ExchangeLimits, readonly string[]>();

/** The time limits in force, in seconds, as response headers. */
export function timeLimitFields({ timeLimitNames }: HeaderRules, limits: ExchangeLimits): readonly string[] {
  const known = told.get(limits);
  if (known) return known;
  const parts = [
    ...(limits.totalMs === null ? [] : [`total=${limits.totalMs / 1000}`]),
    ...(limits.idleMs === null ? [] : [`idle=${limits.idleMs / 1000}`]),
  ];
  const fields = parts.length === 0 ? [] : timeLimitNames.flatMap((name) => [name, parts.join(", ")]);
  told.set(limits, fields);
  return fields;
}

/** Node has checked the syntax; these cases are valid but read differently by different servers. */
export function refuseBadFraming(down: Downstream): void {
  const encoding = down.header("transfer-encoding");
  if (encoding !== undefined && encoding.toLowerCase() !== "chunked") {
    throw new GatewayError("BAD_REQUEST", "The only transfer encoding understood here is chunked.");
  }
  if (down.upgrade !== null && (encoding !== undefined || down.contentLength > 0)) {
    throw new GatewayError("BAD_REQUEST", "A request that switches protocols has no body.");
  }
}

/**
 * Refuses service worker scripts at path addresses: the worker would control pages of the platform's own origin.
 * Browsers mark the request for such a script with a header.
 */
export function refuseWorkerScript(down: Downstream, prefix: string): void {
  if (prefix !== "" && down.header("service-worker") !== undefined)
    throw new GatewayError("FORBIDDEN", "Service workers need an address with a host of its own.");
}
