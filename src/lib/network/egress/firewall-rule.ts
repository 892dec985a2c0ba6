/** One rule of `firewall.rules`: conditions that must all hold, and what happens when they do. */
import { parsePattern, patternsOf } from "./domain-set.ts";
import type { Host } from "./host.ts";
import { type HttpRequest, pathMatches } from "./http-target.ts";
import { type NetworkRange, parseRange, rangeHolds } from "./network-range.ts";
import { RuleProblem } from "./rule-problem.ts";

export type Transport = "tcp" | "udp";

/** A connection or a request that a workload wants to make. */
export interface Destination {
  host: Host;
  /** The address that will be dialled, once the name is resolved. */
  address?: Uint8Array | undefined;
  port: number;
  transport: Transport;
  /** Present when the platform reads the request: plain HTTP, and HTTPS to hosts of `proxy.routing`. */
  http?: HttpRequest | undefined;
}

/** As written in the specification. Every condition that is present must hold. */
export interface RuleSpec {
  action: "allow" | "deny";
  domains?: readonly string[] | undefined;
  cidr?: string | undefined;
  /** A port or a range such as "8000-8999". */
  port?: number | string | undefined;
  /** `http` matches requests that the platform can read. */
  protocol?: Transport | "http" | undefined;
  methods?: readonly string[] | undefined;
  path?: string | undefined;
}

export interface FirewallRule {
  action: "allow" | "deny";
  place: string;
  /** Null: the rule is for every host. */
  patterns: readonly string[] | null;
  /** Null: the rule is for every address. */
  range: NetworkRange | null;
  matches(destination: Destination): boolean;
}

const METHOD = /^[A-Z][A-Z-]{0,31}$/;

/** Throws RuleProblem. */
export function firewallRule(spec: RuleSpec, place: string): FirewallRule {
  const patterns =
    spec.domains?.map((pattern, index) => parsePattern({ pattern, path: `${place}.domains[${index}]` })) ?? null;
  const domains = patterns && new Set(patterns);
  const range: NetworkRange | null = spec.cidr === undefined ? null : parseRange(spec.cidr, `${place}.cidr`);
  const ports = spec.port === undefined ? null : parsePorts(spec.port, `${place}.port`);
  const { protocol, methods, path } = spec;
  const readsHttp = protocol === "http" || methods !== undefined || path !== undefined;
  if (readsHttp && protocol !== undefined && protocol !== "http")
    throw new RuleProblem(`${place}.protocol`, "must be http in a rule with methods or a path");
  for (const [index, method] of (methods ?? []).entries())
    if (!METHOD.test(method))
      throw new RuleProblem(`${place}.methods[${index}]`, "must be a method such as GET, in capitals");
  if (
    path !== undefined &&
    (!path.startsWith("/") ||
      /[?#]/.test(path) ||
      path.indexOf("*") !== path.lastIndexOf("*") ||
      (path.includes("*") && !path.endsWith("*")))
  )
    throw new RuleProblem(`${place}.path`, "must begin with / and may end with *, without a query");
  return {
    action: spec.action,
    place,
    patterns,
    range,
    matches({ host, address, port, transport, http }) {
      if (domains && !patternsOf(host).some((pattern) => domains.has(pattern))) return false;
      if (ports && (port < ports[0] || port > ports[1])) return false;
      if (protocol !== undefined && protocol !== "http" && protocol !== transport) return false;
      if (readsHttp && http === undefined) return false;
      if (http && methods && !methods.includes(http.method)) return false;
      if (http && path !== undefined && !pathMatches(path, http.path)) return false;
      const dialled = address ?? host.address;
      return range === null || (dialled !== null && dialled !== undefined && rangeHolds(range, dialled));
    },
  };
}

function parsePorts(port: number | string, path: string): readonly [number, number] {
  const [, from, to = from] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(String(port)) ?? [];
  const [low, high] = [Number(from), Number(to)];
  if (!(low >= 1 && high <= 65_535 && low <= high))
    throw new RuleProblem(path, "must be a port from 1 to 65535 or a range such as 8000-8999");
  return [low, high];
}
