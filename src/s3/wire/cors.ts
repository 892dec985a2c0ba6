/**
 * Scripts of any page may call the door: a signature is the only credential, and no browser adds one by itself. What a
 * tenant stored is shown as a page without scripts, in an origin of its own.
 */
import type { IncomingHttpHeaders } from "node:http";

export const CORS_HEADERS: Readonly<Record<string, string>> = {
  "access-control-allow-origin": "*",
  "access-control-expose-headers": "*",
  "content-security-policy": "sandbox",
  "x-content-type-options": "nosniff",
};

export const preflight = (headers: IncomingHttpHeaders): Record<string, string> => ({
  "access-control-allow-methods": "GET, HEAD, PUT, POST, DELETE",
  "access-control-allow-headers": headers["access-control-request-headers"] ?? "*",
  "access-control-max-age": "3600",
  "content-length": "0",
});
