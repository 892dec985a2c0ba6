/**
 * Tells from the raw request target and the Host header where a request belongs. Nothing is decoded, collapsed or
 * normalised: what follows a workload's address reaches the workload byte for byte, so `//`, `%2F`, `..` and any
 * query survive.
 *
 * Forms:
 *   /{workspace}/{agents|functions|models|sandboxes|jobs|applications}/{name}[/rest]     (also below /run)
 *   /{workspace}/previews/{id}[/rest]
 *   /{openai|anthropic}/v1[/rest], /e2b[/rest]                    (the API of another product)
 *   {agt|mcp|mdl|sbx|job|app}-{name}-{workspace}[.{region}].{domain}
 *   {id}[.{region}].preview.{domain}
 *   s3.{domain}, {bucket}.s3.{domain}                             (drives as S3 buckets)
 *   {port}-{id}.{domain}                                          (a port of a sandbox, as E2B's clients name it)
 *   any host at or below a custom domain
 *   the same below localhost, on loopback
 *   bl-prod-{hash}.run.localhost                                  (a neighbour, from inside a workload)
 * A first segment from the reserved words, and the root, belong to management, and so does the whole console host.
 */
import {
  LOOPBACK_DOMAIN,
  PREVIEW_LABEL,
  PREVIEWS_SEGMENT,
  S3_LABEL,
  WORKLOADS,
  type WorkloadKind,
} from "../contract/addresses.ts";
import { FACADES, type FacadeName, isFacade } from "../contract/facades.ts";
import { hashIn, INTERNAL_DOMAIN } from "../contract/internal-names.ts";
import { RESERVED_WORDS } from "../contract/reserved-words.ts";

export type Route =
  | { to: "management" }
  /** The S3 door reads bucket and key itself. */
  | { to: "s3" }
  | {
      to: "workload";
      kind: WorkloadKind;
      workspace: string;
      name: string;
      prefix: string;
      path: string;
      /** A port inside the workload; absent = the workload's own API, where the path may name a port. */
      port?: number;
    }
  /** A host label: name and workspace may both contain hyphens, so only the label's record tells where to split it. */
  | { to: "label"; kind: WorkloadKind; label: string; prefix: string; path: string }
  | { to: "preview"; workspace: string | null; id: string; prefix: string; path: string }
  | { to: "domain"; host: string; prefix: string; path: string }
  | { to: "internal"; hash: string; prefix: string; path: string }
  /** A path inside a workspace that a trigger may have claimed. */
  | { to: "trigger"; workspace: string; prefix: string; path: string }
  /** The API of another product. */
  | FacadeRoute
  | { to: "nothing" };

export interface FacadeRoute {
  to: "facade";
  facade: FacadeName;
  prefix: string;
  /** The raw path and query behind the façade's first segment. */
  path: string;
  /** The sandbox and the port that a host name is about. */
  port?: { sandbox: string; number: number };
}

/** The port inside a workload that the address itself names. */
export const portOf = (route: Route): number | undefined => (route.to === "workload" ? route.port : undefined);

export type WorkloadRoute = Exclude<Route, { to: "management" | "s3" | "facade" | "nothing" }>;

export interface RouteSettings {
  /** Lower case, without a leading dot; undefined when only path addresses exist. */
  domain?: string | undefined;
  /** Serves the console and never a workload; undefined when the console shares the public address. */
  consoleHost?: string | undefined;
  /** Host of the platform's own address; it belongs to no custom domain. */
  publicHost?: string | undefined;
  /** Whether names below localhost are served too. */
  isLoopback?: boolean;
  /** True when the host is at or below a custom domain. Must answer from memory. */
  isCustomDomain(host: string): boolean;
}

const MANAGEMENT: Route = { to: "management" };
const NOTHING: Route = { to: "nothing" };
const S3: Route = { to: "s3" };

/** Only keeps separators out; the store decides whether a name exists. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

const INTERNAL_SUFFIX = `.${INTERNAL_DOMAIN}`;
const LOOPBACK_SUFFIX = `.${LOOPBACK_DOMAIN}`;

const KIND_OF_PLURAL = new Map<string, WorkloadKind>(
  Object.entries(WORKLOADS).map(([kind, { plural }]) => [plural, kind as WorkloadKind]),
);
const KIND_OF_LABEL = new Map<string, WorkloadKind>(
  Object.entries(WORKLOADS).map(([kind, { label }]) => [label, kind as WorkloadKind]),
);

export function classify(target: string, hostHeader: string | undefined, settings: RouteSettings): Route {
  let path = target;
  let host = hostHeader;
  if (path.charCodeAt(0) !== SLASH) {
    const absolute = ABSOLUTE_FORM.exec(target);
    if (!absolute) return MANAGEMENT; // "*" and other targets that are not a path
    // In the absolute form the authority of the target counts and the Host header does not.
    host = absolute[1];
    path = target.slice(absolute[0].length);
    if (path.charCodeAt(0) !== SLASH) path = `/${path}`;
  }
  return (host !== undefined && byHost(path, hostName(host), settings)) || byPath(path);
}

const SLASH = 47;
/** Captures the authority without user info. */
export const ABSOLUTE_FORM = /^https?:\/\/(?:[^/?#@]*@)?([^/?#@]+)/i;

/** Lower case, no port, no trailing dots. */
export function hostName(header: string): string {
  let end = header.length;
  const bracket = header.charCodeAt(0) === 91 ? header.indexOf("]") + 1 : 0;
  const colon = header.indexOf(":", bracket);
  if (colon >= 0) end = colon;
  while (end > 0 && header.charCodeAt(end - 1) === 46) end -= 1;
  return header.slice(0, end).toLowerCase();
}

function byHost(path: string, host: string, settings: RouteSettings): Route | null {
  const { domain } = settings;
  if (host === settings.consoleHost) return MANAGEMENT;
  if (host === settings.publicHost) return null;
  if (domain !== undefined && host.endsWith(domain)) {
    if (host.length > domain.length && host.charCodeAt(host.length - domain.length - 1) === 46) {
      const labels = host.slice(0, host.length - domain.length - 1).split(".");
      return labels.at(-1) === S3_LABEL ? S3 : byLabels(path, labels);
    }
    if (host.length === domain.length) return null;
  }
  if (host.endsWith(INTERNAL_SUFFIX)) {
    const hash = hashIn(host.slice(0, -INTERNAL_SUFFIX.length));
    return hash === null ? NOTHING : { to: "internal", hash, prefix: "", path };
  }
  if (settings.isLoopback && host.endsWith(LOOPBACK_SUFFIX))
    return byLabels(path, host.slice(0, -LOOPBACK_SUFFIX.length).split("."));
  return settings.isCustomDomain(host) ? { to: "domain", host, prefix: "", path } : null;
}

const PORT_LABEL = /^(\d{1,5})-([a-z0-9-]+)$/;

/** Hosts below the domain that name neither a workload nor a preview serve the path forms, like the domain itself. */
function byLabels(path: string, labels: string[]): Route | null {
  const first = labels[0] ?? "";
  if (labels.length > 1 && labels.at(-1) === PREVIEW_LABEL) {
    if (labels.length > 3 || !NAME.test(first)) return NOTHING;
    return { to: "preview", workspace: null, id: first, prefix: "", path };
  }
  const [, port, sandbox] = (labels.length === 1 && PORT_LABEL.exec(first)) || [];
  if (port !== undefined && sandbox !== undefined)
    return { to: "facade", facade: "e2b", prefix: "", path, port: { sandbox, number: Number(port) } };
  const hyphen = first.indexOf("-");
  const kind = hyphen > 0 ? KIND_OF_LABEL.get(first.slice(0, hyphen)) : undefined;
  if (kind === undefined) return null;
  const isWhole = first.includes("-", hyphen + 2) && NAME.test(first);
  return labels.length <= 2 && isWhole ? { to: "label", kind, label: first, prefix: "", path } : NOTHING;
}

function byPath(path: string): Route {
  const query = path.indexOf("?");
  const end = query < 0 ? path.length : query;
  let start = 1;
  let stop = segmentEnd(path, start, end);
  let workspace = path.slice(start, stop);
  const underRun = workspace === "run";
  if (underRun) {
    start = stop + 1;
    stop = segmentEnd(path, start, end);
    workspace = path.slice(start, stop);
  }
  if (!underRun && isFacade(workspace) && isBelow(path, FACADES[workspace], stop, end))
    return { to: "facade", facade: workspace, prefix: path.slice(0, stop), path: path.slice(stop) };
  // A workspace of that name may be older than the façade, and keeps its addresses.
  if (RESERVED_WORDS.has(workspace) && !isFacade(workspace)) return underRun ? NOTHING : MANAGEMENT;
  if (workspace === "") return end === 1 ? MANAGEMENT : NOTHING;
  if (stop >= end || !NAME.test(workspace)) return NOTHING;

  const kindStop = segmentEnd(path, stop + 1, end);
  const segment = path.slice(stop + 1, kindStop);
  const kind = KIND_OF_PLURAL.get(segment);
  if (kind === undefined && segment !== PREVIEWS_SEGMENT) {
    if (segment === "") return NOTHING;
    return { to: "trigger", workspace, prefix: path.slice(0, stop), path: path.slice(stop) };
  }
  const nameStop = segmentEnd(path, kindStop + 1, end);
  const name = path.slice(kindStop + 1, nameStop);
  if (!NAME.test(name)) return NOTHING;
  const prefix = path.slice(0, nameStop);
  const rest = nameStop === end ? `/${path.slice(nameStop)}` : path.slice(nameStop);
  if (kind === undefined) return { to: "preview", workspace, id: name, prefix, path: rest };
  return { to: "workload", kind, workspace, name, prefix, path: rest };
}

/** Whether the path from `from` on is `base`, or lies below it. */
const isBelow = (path: string, base: string, from: number, end: number): boolean =>
  path.startsWith(base, from) && (from + base.length === end || path.charCodeAt(from + base.length) === SLASH);

function segmentEnd(path: string, from: number, end: number): number {
  const slash = path.indexOf("/", from);
  return slash < 0 || slash > end ? end : slash;
}
