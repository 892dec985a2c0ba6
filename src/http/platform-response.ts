/** Responses of the platform itself, marked so that they are not mistaken for the workload's. */

import type { GatewayError } from "../contract/gateway-errors.ts";
import { STATUS_CODES } from "../lib/network/node-http.ts";
import type { Clock } from "../lib/time/clock.ts";
import type { Downstream } from "./downstream.ts";
import { type FixedHeaders, fixedHeaders, type HeaderRules } from "./header-rules.ts";
import { requestIdOf } from "./request-id.ts";

export interface PlatformResponseOptions {
  rules: HeaderRules;
  clock: Clock;
  /** URL of the page that explains the error codes. */
  docsUrl: string;
}

export function respondError(
  options: PlatformResponseOptions,
  down: Downstream,
  error: GatewayError,
  extra: { fixed: FixedHeaders | null; requestId: string; marks?: readonly string[] },
): void {
  const headers: string[] = ["Cache-Control", "no-store"];
  headers.push(...(fixedHeaders(error.headers)?.list ?? []));
  if (error.status === 401 && error.headers?.["www-authenticate"] === undefined) {
    headers.push("WWW-Authenticate", "Bearer");
  }
  headers.push("X-Request-Id", extra.requestId, ...(extra.marks ?? []));
  const body = JSON.stringify(error.toWire(options.clock.now(), options.docsUrl));
  respond(options.rules, down, error.status, "application/json", body, headers, extra.fixed);
}

export function respond(
  rules: HeaderRules,
  down: Downstream,
  status: number,
  contentType: string | null,
  text: string,
  headers: readonly string[],
  fixed: FixedHeaders | null,
): void {
  const body = Buffer.from(text);
  const out: string[] = [];
  if (contentType !== null) out.push("Content-Type", contentType);
  if (status !== 204) out.push("Content-Length", String(body.length));
  out.push(...rules.source);
  if (!headers.includes("X-Request-Id")) out.push("X-Request-Id", requestIdOf(down));
  for (let i = 0; i < headers.length; i += 2) {
    if (!fixed?.names.has((headers[i] as string).toLowerCase()))
      out.push(headers[i] as string, headers[i + 1] as string);
  }
  if (fixed) out.push(...forOurs(rules, fixed.list));
  down.head(status, STATUS_CODES[status] ?? "", out);
  if (body.length > 0) down.write(body);
  down.end([]);
}

/** Removes the owner's response fields that would describe a platform response wrongly or speak for its origin. */
function forOurs({ pages }: HeaderRules, list: readonly string[]): string[] {
  const out: string[] = [];
  for (let i = 0; i < list.length; i += 2) {
    const name = (list[i] as string).toLowerCase();
    if (!name.startsWith("content-") && !pages.path.has(name)) out.push(list[i] as string, list[i + 1] as string);
  }
  return out;
}
