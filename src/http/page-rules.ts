/**
 * What a workload's response may tell a browser. In the path form all workloads share the platform's own origin, so
 * fields that speak for a whole origin or site end here, cookies stay below the workload's own address, and what a
 * browser could show as a page is shown in a sandbox, without that origin. On a host of its own a workload speaks for
 * that host, but not for the site around it, which may be the platform's.
 *
 * Whether a response is a page is decided by its type and never by what the request says about itself: browsers leave
 * those fields out on plain HTTP. Bodies are never touched.
 */
import { cookieMark, isPlatformCookie } from "../contract/platform-cookies.ts";

/** What happens to pages in the path form: shown without the origin, saved instead of shown, or left as they are. */
export const PATH_PAGES = ["sandboxed", "off", "trusted"] as const;
export type PathPages = (typeof PATH_PAGES)[number];

type FieldRule = "drop" | "cookie" | "clear" | "type";

/** What becomes of a field in the path form, and on a host of the workload's own; absent = it passes. */
const FIELDS: Readonly<Record<string, { path: FieldRule; host?: FieldRule }>> = {
  "set-cookie": { path: "cookie", host: "cookie" },
  "set-cookie2": { path: "drop", host: "drop" },
  "clear-site-data": { path: "drop", host: "clear" },
  "content-type": { path: "type" },
  "service-worker-allowed": { path: "drop" },
  "cross-origin-opener-policy": { path: "drop" },
  "cross-origin-opener-policy-report-only": { path: "drop" },
  "cross-origin-embedder-policy": { path: "drop" },
  "cross-origin-embedder-policy-report-only": { path: "drop" },
  "cross-origin-resource-policy": { path: "drop" },
  "origin-agent-cluster": { path: "drop" },
  "alt-svc": { path: "drop" },
  nel: { path: "drop" },
  "report-to": { path: "drop" },
  "reporting-endpoints": { path: "drop" },
  "strict-transport-security": { path: "drop" },
  "accept-ch": { path: "drop" },
  "critical-ch": { path: "drop" },
  "set-login": { path: "drop" },
  "use-as-dictionary": { path: "drop" },
  "secure-session-registration": { path: "drop" },
  "secure-session-challenge": { path: "drop" },
  "sec-session-registration": { path: "drop" },
  "sec-session-challenge": { path: "drop" },
  "speculation-rules": { path: "drop" },
  "supports-loading-mode": { path: "drop" },
  refresh: { path: "drop" },
  "document-policy": { path: "drop" },
  "require-document-policy": { path: "drop" },
  "document-isolation-policy": { path: "drop" },
  "observe-browsing-topics": { path: "drop" },
  "activate-storage-access": { path: "drop" },
  "shared-storage-write": { path: "drop" },
  "attribution-reporting-register-source": { path: "drop" },
  "attribution-reporting-register-trigger": { path: "drop" },
  "ad-auction-signals": { path: "drop" },
  "ad-auction-additional-bid": { path: "drop" },
  "public-key-pins": { path: "drop" },
  "public-key-pins-report-only": { path: "drop" },
  "expect-ct": { path: "drop" },
};

/** Names that never pass in the path form. */
export const PATH_DROPPED: readonly string[] = Object.entries(FIELDS)
  .filter(([, { path }]) => path === "drop")
  .map(([name]) => name);

export interface PageRules {
  pathPages: PathPages;
  cookieMark: string;
  /** By lower-case name; fields of the connection are among those that are dropped. */
  path: ReadonlyMap<string, FieldRule>;
  host: ReadonlyMap<string, FieldRule>;
}

export function pageRules(options: { brand: string; pathPages: PathPages; drop: Iterable<string> }): PageRules {
  const dropped = [...options.drop].map((name): [string, FieldRule] => [name, "drop"]);
  const fields = Object.entries(FIELDS);
  return {
    pathPages: options.pathPages,
    cookieMark: cookieMark(options.brand),
    path: new Map([...fields.map(([name, { path }]): [string, FieldRule] => [name, path]), ...dropped]),
    host: new Map([
      ...fields.flatMap(([name, { host }]): [string, FieldRule][] => (host === undefined ? [] : [[name, host]])),
      ...dropped,
    ]),
  };
}

/** The value to send; null when the field ends here. `prefix` is the workload's address in the path form, else "". */
export function ruledValue(rules: PageRules, rule: FieldRule, value: string, prefix: string): string | null {
  if (rule === "type") return value;
  if (rule === "cookie") return confinedCookie(value, prefix, rules.cookieMark);
  return rule === "clear" ? clearedByOrigin(value) : null;
}

/**
 * Nameless cookies look like any other once they are sent back, and a Domain reaches the platform's site. In the path
 * form a cookie is sent below the workload's address and nowhere else.
 */
export function confinedCookie(value: string, prefix: string, mark: string): string | null {
  const end = value.indexOf(";");
  const pair = end < 0 ? value : value.slice(0, end);
  const name = pair.slice(0, Math.max(0, pair.indexOf("="))).trim();
  if (name === "" || isPlatformCookie(name, mark)) return null;
  // The address of a trigger is its owner's text: it must not become an attribute.
  if (prefix.includes(";")) return null;
  if (prefix === "" && !/domain/i.test(value)) return value;
  let path = "";
  let kept = pair;
  for (const attribute of end < 0 ? [] : value.slice(end + 1).split(";")) {
    const equals = attribute.indexOf("=");
    const word = (equals < 0 ? attribute : attribute.slice(0, equals)).trim().toLowerCase();
    if (word === "domain") continue;
    if (prefix !== "" && word === "path") path = equals < 0 ? "" : attribute.slice(equals + 1).trim();
    else kept += `;${attribute}`;
  }
  return prefix === "" ? kept : `${kept}; Path=${pathBelow(prefix, path)}`;
}

/** A workload that does not know its prefix means a path of its own. */
function pathBelow(prefix: string, path: string): string {
  if (path === prefix || path.startsWith(`${prefix}/`)) return path;
  return path.startsWith("/") && path !== "/" ? prefix + path : prefix;
}

/** What is cleared for one origin alone; cookies and "*" are the whole site's. */
const ORIGIN_ONLY = new Set(['"cache"', '"storage"', '"executionContexts"', '"prefetchCache"', '"prerenderCache"']);

function clearedByOrigin(value: string): string | null {
  const kept = value
    .split(",")
    .map((word) => word.trim())
    .filter((word) => ORIGIN_ONLY.has(word));
  return kept.length === 0 ? null : kept.join(", ");
}

const SANDBOX = "sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads";

/** Statuses that carry no document of their own. */
const BODILESS = new Set([101, 204, 205, 304]);

/** Adds to a response in the path form, in place, what keeps it from being a page of the platform's origin. */
export function isolatePage(rules: PageRules, status: number, types: readonly string[], headers: string[]): void {
  if (rules.pathPages === "trusted" || BODILESS.has(status) || !isDocument(types)) return;
  if (rules.pathPages === "sandboxed") {
    headers.push("Content-Security-Policy", SANDBOX);
    return;
  }
  for (let i = headers.length - 2; i >= 0; i -= 2)
    if (/^content-disposition$/i.test(headers[i] as string)) headers.splice(i, 2);
  headers.push("Content-Security-Policy", "sandbox", "Content-Disposition", "attachment");
}

/** Types that browsers never run as a page. Any other is taken for one, as browsers guess at what they do not know. */
const INERT = new RegExp(
  `^(?:${[
    "application/(?:json|[a-z0-9.-]+\\+json|x-ndjson|jsonl|javascript|octet-stream|wasm|pdf|zip|gzip|x-tar|grpc(?:\\+\\w+)?)",
    "text/(?:plain|css|csv|javascript|event-stream|markdown)",
    "(?:image|audio|video|font)/[a-z0-9.-]+",
  ].join("|")})$`,
);
/** Types are chosen by strangers: beyond this many spellings nothing is remembered any more. */
const KNOWN_MAX = 500;
const known = new Map<string, boolean>();

/** Of several types a browser takes one that is hard to foresee. */
export function isDocument(types: readonly string[]): boolean {
  const [type] = types;
  if (type === undefined || types.length > 1) return true;
  const found = known.get(type);
  if (found !== undefined) return found;
  const isPage = !INERT.test((type.split(";")[0] ?? "").trim().toLowerCase()) || type.includes(",");
  if (known.size < KNOWN_MAX && type.length <= 128) known.set(type, isPage);
  return isPage;
}
