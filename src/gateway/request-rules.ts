/** What the kind of workload and the shape of a request decide: its limits, its identity headers, its cookies. */
import { GatewayError } from "../contract/gateway-errors.ts";
import type { Admitted, WorkloadRoute } from "./admit.ts";
import type { GatewayDeps, Workload } from "./deps.ts";
import type { Downstream } from "./downstream.ts";
import type { ExchangeLimits } from "./forward.ts";
import type { HeaderRules } from "./header-rules.ts";
import { STICKY_TTL_MAX_SECONDS } from "./pick-revision.ts";

/** Whether the client's own connection is encrypted, as far as we can know. */
export function isSecure(rules: HeaderRules, down: Downstream): boolean {
  return down.secure || (rules.trustProxy && down.header("x-forwarded-proto") === "https");
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
    // Previews are often shown in a frame of another site, where only such a cookie is kept.
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
  if (fileMax === null || !writesOneFile(down, workload, path)) return limits;
  if (down.contentLength > fileMax) {
    throw new GatewayError("REQUEST_ENTITY_TOO_LARGE", `One request may carry ${fileMax} bytes of a file.`);
  }
  return { ...limits, bodyMax: fileMax };
}

/** JSON and forms are taken apart in memory inside the sandbox; raw bodies are streamed and need no limit. */
function writesOneFile(down: Downstream, workload: Workload, path: string): boolean {
  if (workload.kind !== "sandbox" || workload.door !== "api" || !path.startsWith("/filesystem/")) return false;
  if (down.bodyFraming === "none") return false;
  return /^(?:application\/json|multipart\/form-data)\b/i.test(down.header("content-type") ?? "");
}

/** Node has checked the syntax; these are the readings on which two servers could still disagree. */
export function refuseBadFraming(down: Downstream): void {
  const encoding = down.header("transfer-encoding");
  if (encoding !== undefined && encoding.toLowerCase() !== "chunked") {
    throw new GatewayError("BAD_REQUEST", "The only transfer encoding understood here is chunked.");
  }
  if (down.upgrade !== null && (encoding !== undefined || down.contentLength > 0)) {
    throw new GatewayError("BAD_REQUEST", "A request that switches protocols has no body.");
  }
}
