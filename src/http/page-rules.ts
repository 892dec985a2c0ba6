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

/** How pages are served at path addresses: without the platform's origin, as a download, or unchanged. */
export const PATH_PAGES = ["sandboxed", "off", "trusted"] as const;
export type PathPages = (typeof PATH_PAGES)[number];

type FieldRule = "drop" | "cookie" | "clear" | "type";

/** What happens to a response field at a path address and on the workload's own host; absent = it passes. */
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

/** Fields that are always removed at path addresses. */
export const PATH_DROPPED: readonly string[] = Object.entries(FIELDS)
  .filter(([, { path }]) => path === "drop")
  .map(([name]) => name);

export interface PageRules {
  pathPages: PathPages;
  cookieMark: string;
  /** By lower-case name; hop-by-hop fields are among the dropped ones. */
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

/** The value to send; null when the field is removed. `prefix` is the workload's path address, "" on its own host. */
export function ruledValue(rules: PageRules, rule: FieldRule, value: string, prefix: string): string | null {
  if (rule === "type") return value;
  if (rule === "cookie") return confinedCookie(value, prefix, rules.cookieMark);
  return rule === "clear" ? clearedByOrigin(value) : null;
}

/**
 * Removes nameless cookies, which look like any other when sent back, and the Domain attribute, which would reach the
 * platform's site. At a path address, limits a cookie to paths below the workload's address.
 */
export function confinedCookie(value: string, prefix: string, mark: string): string | null {
  const end = value.indexOf(";");
  const pair = end < 0 ? value : value.slice(0, end);
  const name = pair.slice(0, Math.max(0, pair.indexOf("="))).trim();
  if (name === "" || isPlatformCookie(name, mark)) return null;
  // A trigger's path is chosen by its owner and must not add a cookie attribute.
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

/** A workload that does not know its prefix sends paths relative to its own root. */
function pathBelow(prefix: string, path: string): string {
  if (path === prefix || path.startsWith(`${prefix}/`)) return path;
  return path.startsWith("/") && path !== "/" ? prefix + path : prefix;
}

/** Clear-Site-Data values that affect one origin only; cookies and "*" affect the whole site. */
const ORIGIN_ONLY = new Set(['"cache"', '"storage"', '"executionContexts"', '"prefetchCache"', '"prerenderCache"']);

function clearedByOrigin(value: string): string | null {
  const kept = value
    .split(",")
    .map((word) => word.trim())
    .filter((word) => ORIGIN_ONLY.has(word));
  return kept.length === 0 ? null : kept.join(", ");
}

const SANDBOX = "sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads";

/** Statuses without a document. */
const BODILESS = new Set([101, 204, 205, 304]);

/** Adds headers, in place, that keep a response at a path address from running as a page of the platform's origin. */
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

/** Types that browsers never run as a page. Any other type counts as a page, because browsers sniff unknown types. */
const INERT = new RegExp(
  `^(?:${[
    "application/(?:json|[a-z0-9.-]+\\+json|x-ndjson|jsonl|javascript|octet-stream|wasm|pdf|zip|gzip|x-tar|grpc(?:\\+\\w+)?)",
    "text/(?:plain|css|csv|javascript|event-stream|markdown)",
    "(?:image|audio|video|font)/[a-z0-9.-]+",
  ].join("|")})$`,
);
/** Cached types. Workloads choose them, so the cache must be bounded. */
const KNOWN_MAX = 500;
const known = new Map<string, boolean>();

/** With several types, it is unclear which one a browser uses, so the response counts as a page. */
export function isDocument(types: readonly string[]): boolean {
  const [type] = types;
  if (type === undefined || types.length > 1) return true;
  const found = known.get(type);
  if (found !== undefined) return found;
  const isPage = !INERT.test((type.split(";")[0] ?? "").trim().toLowerCase()) || type.includes(",");
  if (known.size < KNOWN_MAX && type.length <= 128) known.set(type, isPage);
  return isPage;
}
