/**
 * The console calls workloads from its own origin: files and processes of a sandbox, a chat with a model or an agent,
 * tools of an MCP server. Its browser may read the answers, with a bearer token in each request. No other origin gets
 * anything from this.
 */
import type { Downstream } from "../http/downstream.ts";
import type { HeaderRules } from "../http/header-rules.ts";
import { respond } from "../http/platform-response.ts";
import { isPreflight } from "./preflight.ts";

/** How long a browser may keep the answer of a preflight. */
const KEPT_SECONDS = 600;
const SHOWN = "X-Request-Id, ETag, Content-Disposition, Mcp-Session-Id";

/** Marks answers for the console; true when the request was a preflight, which is answered here. */
export function admitConsole(rules: HeaderRules, down: Downstream, origin: string): boolean {
  if (down.header("origin") !== origin) return false;
  const allowed = ["Access-Control-Allow-Origin", origin, "Vary", "Origin"];
  if (isPreflight(down)) {
    const headers = [
      ...allowed,
      ...["Access-Control-Allow-Methods", down.header("access-control-request-method") ?? ""],
      ...["Access-Control-Allow-Headers", down.header("access-control-request-headers") ?? ""],
      ...["Access-Control-Max-Age", String(KEPT_SECONDS)],
    ];
    respond(rules, down, 204, null, "", headers, null);
    return true;
  }
  const head = down.head.bind(down);
  down.head = (status, reason, headers) =>
    head(status, reason, [...withoutOwn(headers), ...allowed, "Access-Control-Expose-Headers", SHOWN]);
  return false;
}

/** What the workload says about origins speaks of others. */
function withoutOwn(headers: readonly string[]): string[] {
  const kept: string[] = [];
  for (let i = 0; i < headers.length; i += 2) {
    const [name = "", value = ""] = [headers[i], headers[i + 1]];
    if (!/^access-control-/i.test(name)) kept.push(name, value);
  }
  return kept;
}
