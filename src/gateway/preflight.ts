/**
 * CORS preflights of previews. A browser sends them without any credential and accepts only a success, so where the
 * preview's owner has set CORS headers the gateway answers itself: the application need not know about CORS, and a
 * private preview stays private.
 */
import type { Downstream } from "../http/downstream.ts";
import type { FixedHeaders, HeaderRules } from "../http/header-rules.ts";
import { respond } from "../http/platform-response.ts";

export function isPreflight(down: Downstream): boolean {
  return (
    down.method === "OPTIONS" &&
    down.header("origin") !== undefined &&
    down.header("access-control-request-method") !== undefined
  );
}

/** Allows what the browser asks for where the owner set an origin but no methods or headers. */
export function answerPreflight(rules: HeaderRules, down: Downstream, fixed: FixedHeaders): void {
  const asked = [
    "Access-Control-Allow-Methods",
    down.header("access-control-request-method") ?? "",
    "Access-Control-Allow-Headers",
    down.header("access-control-request-headers") ?? "",
  ];
  const headers: string[] = [];
  for (let i = 0; i < asked.length; i += 2) {
    const value = asked[i + 1] as string;
    if (value !== "" && !fixed.names.has((asked[i] as string).toLowerCase())) headers.push(asked[i] as string, value);
  }
  headers.push("Vary", "Origin, Access-Control-Request-Method, Access-Control-Request-Headers");
  respond(rules, down, 204, null, "", headers, fixed);
}
